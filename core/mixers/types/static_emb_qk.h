// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStaticEmbedding{
    .name = "static_emb_qk",
    .summary = "query and key from the tokens' embeddings in every layer",
    .query_key_source = QueryKeySource::embedding,
    .cost = {"StaticEmbQK", kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
