// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

// Softmax attention whose heads share their maps: each is standard attention with tied weights.

/// One head, whose output stands as often before the output projection as the model has heads.
inline const MixerType kSingleHead{
    .name = "sha", .summary = "softmax attention with one head", .in_encoders = true, .in_cross = true};
/// Shazeer, arXiv 1911.02150.
inline const MixerType kMultiQuery{.name = "mqa",
                                   .summary = "softmax attention whose heads share one key and value",
                                   .in_encoders = true,
                                   .in_cross = true};
/// A head's value is its key before norms and rotary positions.
inline const MixerType kSharedKeyValue{.name = "skv",
                                       .summary = "softmax attention whose keys are its values, too",
                                       .in_encoders = true,
                                       .in_cross = true};
/// EL-attention (Yan et al., arXiv 2105.04779): a head's key and value are its part of the layer's input.
inline const MixerType kElAttention{.name = "el_att",
                                    .summary = "softmax attention whose keys and values are the layer's input",
                                    .in_encoders = true,
                                    .in_cross = true};
/// Multiple-head embeddings (Xue and Aletras, arXiv 2310.07911): one map for all heads, then a vector of each head's
/// own that is added, or that numbers are multiplied by after one is added to it.
inline const MixerType kHeadEmbeddingAdd{
    .name = "mhe_add",
    .summary = "softmax attention with one map for all heads, plus a vector of each",
    .in_encoders = true,
    .in_cross = true};
inline const MixerType kHeadEmbeddingMul{
    .name = "mhe_mul",
    .summary = "softmax attention with one map for all heads, times a vector of each",
    .in_encoders = true,
    .in_cross = true};

}  // namespace headscope::mixers
