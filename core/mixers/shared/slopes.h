// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/mixers/shared/attend.h"

namespace headscope::mixers {

/// The numbers of a small tensor in float32, as rules hold them.
std::vector<float> rule_numbers(const at::Tensor& tensor);

/// Sets a learned bias [heads, window] by distance from 0 on, as the rule's table; farther keys have none.
void set_distance_bias(const at::Tensor& bias, kernels::ScoreRule& rule, RuleTensors& tensors);

/// Subtracts trained `slopes` [heads] times the distance from the scores of up to `keys` keys, besides `bias` (as
/// above, or undefined). Where autograd records the slopes, both are one table as long as the keys: the gradient of a
/// slope is the sum of -(i - j) dS. Else the rule holds the slopes themselves.
void set_trained_slopes(const at::Tensor& slopes, const at::Tensor& bias, std::int64_t keys, kernels::ScoreRule& rule,
                        RuleTensors& tensors);

}  // namespace headscope::mixers
