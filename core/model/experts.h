// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A mixture of experts in place of a feed-forward: a router chooses a few of them for each token, and their outputs are
// added with the softmax of its logits as weights (ModelConfig::expert_shares_of_chosen, ExpertRouting).

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/model/config.h"
#include "core/model/load/expert_loader.h"
#include "core/model/load/recipe.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

/// Which experts each token goes through, and what their outputs are multiplied by.
struct Routing {
    at::Tensor chosen, shares;  ///< [.., per token]; int64, and the type of the router's logits
};

/// E experts of f hidden units each: maps [out, in] in which the rows of an expert's gate come before those of its up.
/// gpt-oss has [in, out], columns of gate and of up that alternate, and biases, as in its files.
struct Experts {
    at::Tensor router, router_bias;  ///< [E, d], [E] or undefined
    at::Tensor choice_bias;          ///< [E] or undefined
    /// For experts without a gate the rows of up alone, [E, f, d] or [E f, d].
    at::Tensor gate_up, gate_up_bias;  ///< [E, 2 f, d] or [E 2 f, d]; gpt-oss: [E, d, 2 f], [E, 2 f]
    at::Tensor down, down_bias;        ///< [E, d, f] or [E d, f]; gpt-oss: [E, f, d], [E, d]
    std::int64_t per_token = 0;        ///< 0: there are no experts
    bool shares_of_chosen = true;
    ExpertRouting routing;
    bool input_first = false;  ///< gate_up [E, d, 2 f], all of gate before all of up, and down [E, f, d]
    Activation activation = Activation::silu;
    bool gated = true;
    double limit = 0, slope = 1;     ///< ModelConfig::expert_limit, expert_slope
    ExpertLoader* loader = nullptr;  ///< asked for the matrices of an expert before their use; null: all are valid

    /// [.., d] -> the same shape. `cancellation` is heeded after each expert's share of a chunk of rows. `taken`, where
    /// it is given, is set to the routing of all rows.
    at::Tensor operator()(const at::Tensor& x, const Cancellation* cancellation, Routing* taken = nullptr) const;
    void declare(TensorPlan& plan, const TensorNames& names);

    /// Outputs of the experts that one row [1, d] takes, each times its share: [per_token, d], with their numbers in
    /// `taken`. Their sum is operator()'s, up to rounding.
    at::Tensor terms(const at::Tensor& row, Routing& taken) const;

private:
    Routing route(const at::Tensor& rows) const;
    at::Tensor outside_best_groups(const at::Tensor& scores) const;
    at::Tensor of_rows(const at::Tensor& rows, const Routing& of_token, const Cancellation* cancellation) const;
    at::Tensor of_expert(std::int64_t expert, const at::Tensor& rows) const;
    void declare_gpt_oss(TensorPlan& plan, const TensorNames& names, const ExpertNames& own);
};

}  // namespace headscope::model
