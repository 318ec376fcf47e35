// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStaticEmbedding{.name = "static_emb_qk",
                                        .title = "StaticEmbQK",
                                        .color = 5,
                                        .summary = "query and key from the tokens' embeddings in every layer",
                                        .query_key_source = QueryKeySource::embedding,
                                        .in_deconstructing = true,
                                        .cost = {kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
