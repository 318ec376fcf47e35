// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// ALiBi (Press et al., arXiv 2108.12409): no rotary positions, whatever the model has; each head takes its slope times
/// the distance from a score.
inline const MixerType kAlibi{
    .name = "alibi",
    .title = "ALiBi",
    .color = 2,
    .summary = "softmax attention whose scores fall with the distance, by a slope of each head",
    .cost = {kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
