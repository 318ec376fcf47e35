// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// gpt-oss's softmax (arXiv 2508.10925): each head learns a logit without a value that is in the denominator of its
/// rows.
inline const MixerType kSinkLogits{
    .name = "sink_logits",
    .title = "Learned sink",
    .color = 3,
    .summary = "softmax attention with a learned score of each head in the denominator (a learned sink)",
    .in_encoders = true,
    .cost = {kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues, "", "", "3 d^2 + h"}};

}  // namespace headscope::mixers
