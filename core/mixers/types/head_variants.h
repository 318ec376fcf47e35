// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

constexpr MixerCostText head_embedding_cost() {
    return {.time = "B L^2 d + B L d^2 / h",
            .prefill = "4 B L^2 d + 6 B L d^2 / h",
            .decode = "6 B d^2 / h + 4 B L d",
            .cache = "4 B L d / h",
            .parameters = "3 d^2 / h + 3 d"};
}

// Softmax attention whose heads share their maps: each is standard attention with tied weights.

/// One head, whose output stands as often before the output projection as the model has heads.
inline const MixerType kSingleHead{.name = "sha",
                                   .title = "SHA",
                                   .color = 1,
                                   .summary = "softmax attention with one head",
                                   .in_encoders = true,
                                   .in_cross = true,
                                   .cost = {.time = "B L^2 d / h + B L d^2 / h",
                                            .prefill = "4 B L^2 d / h + 6 B L d^2 / h",
                                            .decode = "6 B d^2 / h + 4 B L d / h",
                                            .cache = "4 B L d / h",
                                            .parameters = "3 d^2 / h"}};
/// Shazeer, arXiv 1911.02150.
inline const MixerType kMultiQuery{.name = "mqa",
                                   .title = "MQA",
                                   .color = 2,
                                   .summary = "softmax attention whose heads share one key and value",
                                   .in_encoders = true,
                                   .in_cross = true,
                                   .cost = {.time = kQuadratic,
                                            .prefill = "4 B L^2 d + 2 B L d^2 + 4 B L d^2 / h",
                                            .decode = "2 B d^2 + 4 B d^2 / h + 4 B L d",
                                            .cache = "4 B L d / h",
                                            .parameters = "d^2 + 2 d^2 / h"}};
/// A head's value is its key before norms and rotary positions.
inline const MixerType kSharedKeyValue{.name = "skv",
                                       .title = "SKV",
                                       .color = 3,
                                       .summary = "softmax attention whose keys are its values, too",
                                       .in_encoders = true,
                                       .in_cross = true,
                                       .cost = {.time = kQuadratic,
                                                .prefill = "4 B L^2 d + 4 B L d^2",
                                                .decode = "4 B d^2 + 4 B L d",
                                                .cache = "2 B L d",
                                                .parameters = "2 d^2"}};
/// EL-attention (Yan et al., arXiv 2105.04779): a head's key and value are its part of the layer's input.
inline const MixerType kElAttention{.name = "el_att",
                                    .title = "EL-att",
                                    .color = 4,
                                    .summary = "softmax attention whose keys and values are the layer's input",
                                    .in_encoders = true,
                                    .in_cross = true,
                                    .cost = {.time = kQuadratic,
                                             .prefill = "4 B L^2 d + 2 B L d^2",
                                             .decode = "2 B d^2 + 4 B L d",
                                             .cache = "2 B L d",
                                             .parameters = "d^2"}};
/// Multiple-head embeddings (Xue and Aletras, arXiv 2310.07911): one map for all heads, then a vector of each head's
/// own that is added, or that numbers are multiplied by after one is added to it.
inline const MixerType kHeadEmbeddingAdd{
    .name = "mhe_add",
    .title = "MHE-ADD",
    .color = 5,
    .summary = "softmax attention with one map for all heads, plus a vector of each",
    .in_encoders = true,
    .in_cross = true,
    .cost = head_embedding_cost()};
inline const MixerType kHeadEmbeddingMul{
    .name = "mhe_mul",
    .title = "MHE-MUL",
    .color = 6,
    .summary = "softmax attention with one map for all heads, times a vector of each",
    .in_encoders = true,
    .in_cross = true,
    .cost = head_embedding_cost()};

}  // namespace headscope::mixers
