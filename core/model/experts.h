// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A mixture of experts in place of a feed-forward (gpt-oss): a router chooses a few of them for each token, and their
// outputs are added with the softmax of the chosen ones' logits as weights.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/model/recipe.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {

/// E experts of f hidden units each; columns of gate and of up alternate, as in the file.
struct Experts {
    at::Tensor router, router_bias;    ///< [E, d], [E]
    at::Tensor gate_up, gate_up_bias;  ///< [E, d, 2 f], [E, 2 f]
    at::Tensor down, down_bias;        ///< [E, f, d], [E, d]
    std::int64_t per_token = 0;        ///< 0: there are no experts
    double limit = 0, slope = 1;       ///< ModelConfig::expert_limit, expert_slope

    /// [.., d] -> the same shape. `cancellation` is heeded after each expert's share of a chunk of rows.
    at::Tensor operator()(const at::Tensor& x, const Cancellation* cancellation) const;
    void declare(TensorPlan& plan, const TensorNames& names);

private:
    at::Tensor of_rows(const at::Tensor& rows, const Cancellation* cancellation) const;
};

}  // namespace headscope::model
