// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Sigmoid attention (Ramapuram et al., arXiv 2409.04431): A = sigmoid(s + bias), each weight for itself. A
/// configuration that does not say `bias` has -ln of max_position_embeddings, so that rows of a fresh model sum to
/// about 1.
inline const MixerType kSigmoid{.name = "sigmoid",
                                .title = "Sigmoid",
                                .color = 1,
                                .summary = "the sigmoid of each score instead of the softmax: rows sum to anything",
                                .in_encoders = true,
                                .options = {{"bias", 0.0, {}, -1e4, 1e4}},
                                .cost = {kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
