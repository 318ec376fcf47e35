// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStaticEmbedding{.name = "static_emb_qk",
                                        .summary = "query and key from the tokens' embeddings in every layer",
                                        .query_key_source = QueryKeySource::embedding,
                                        .cost = {"StaticEmbQK", kQuadratic, "4 B L^2 d + 6 B L d^2",
                                                 "6 B d^2 + 4 B L d", "(8 B L d + 2 B L^2 h) / t", "4 B L d"}};

}  // namespace headscope::mixers
