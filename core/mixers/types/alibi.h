// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// The slopes of ALiBi: 2^(-8 k / n), k = 1 .. n, for a power of two of heads; further heads take every other slope of
/// twice as many.
std::vector<float> alibi_slopes(std::int64_t heads, double scale);

/// ALiBi (Press et al., arXiv 2108.12409): no rotary positions, whatever the model has; each head takes its slope times
/// the distance from a score. `trained`: the slopes are a tensor that begins with the usual ones.
inline const MixerType kAlibi{
    .name = "alibi",
    .title = "ALiBi",
    .color = 2,
    .summary = "softmax attention whose scores fall with the distance, by a slope of each head",
    .options = {{"trained", false}},
    .cost = {.time = kQuadratic,
             .prefill = kMatrices,
             .decode = kMatricesOfOne,
             .activation = kKept,
             .cache = kKeysValues,
             .parameters = "3 d^2 + o h"}};

}  // namespace headscope::mixers
