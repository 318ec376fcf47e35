// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/experts.h"

#include <algorithm>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

namespace headscope::model {
namespace {

/// Rows that go through the experts together: enough for whole matrix products even where many experts share them.
constexpr std::int64_t kRows = 4096;

}  // namespace

at::Tensor Experts::operator()(const at::Tensor& x, const Cancellation* cancellation) const {
    const at::Tensor rows = x.reshape({-1, x.size(-1)});
    std::vector<at::Tensor> parts;
    for (std::int64_t first = 0; first < rows.size(0); first += kRows) {
        parts.push_back(of_rows(rows.narrow(0, first, std::min(kRows, rows.size(0) - first)), cancellation));
    }
    return (parts.size() == 1 ? parts.front() : at::cat(parts)).view(x.sizes());
}

at::Tensor Experts::of_rows(const at::Tensor& rows, const Cancellation* cancellation) const {
    const auto [logits, chosen] = at::topk(at::linear(rows, router, router_bias), per_token);
    const at::Tensor shares = at::softmax(logits, -1).flatten();
    // Pairs of a token and one of its experts, in the order of the experts: each expert's share is one piece.
    const at::Tensor order = at::argsort(chosen.flatten(), true, 0);
    const at::Tensor tokens = at::floor_divide(order, per_token);
    const at::Tensor counts = at::bincount(chosen.flatten(), {}, router.size(0));
    at::Tensor sum = at::zeros_like(rows);
    std::int64_t done = 0;
    for (std::int64_t expert = 0; expert < router.size(0); ++expert) {
        const auto count = counts.const_data_ptr<std::int64_t>()[expert];
        if (count == 0) continue;
        if (cancellation) cancellation->check();
        const at::Tensor here = tokens.narrow(0, done, count);
        const at::Tensor inner =
            at::addmm(gate_up_bias.select(0, expert), rows.index_select(0, here), gate_up.select(0, expert));
        const at::Tensor halves = inner.unflatten(-1, {-1, 2});
        const at::Tensor gate = halves.select(-1, 0).clamp_max(limit);
        const at::Tensor up = halves.select(-1, 1).clamp(-limit, limit);
        const at::Tensor output = at::addmm(down_bias.select(0, expert), (up + 1) * (gate * at::sigmoid(gate * slope)),
                                            down.select(0, expert));
        sum.index_add_(0, here, output * shares.index_select(0, order.narrow(0, done, count)).unsqueeze(1));
        done += count;
    }
    return sum;
}

void Experts::declare(TensorPlan& plan, const TensorNames& names) {
    const ModelConfig& config = plan.config();
    const SizeKeys& keys = plan.keys();
    const Dimension experts{config.experts, keys.experts};
    const Dimension hidden{config.hidden, keys.hidden};
    const Dimension inner{config.feed_forward, keys.feed_forward};
    const Dimension both{2 * config.feed_forward, "2 * " + keys.feed_forward};
    per_token = config.experts_per_token;
    limit = config.expert_limit;
    slope = config.expert_slope;
    const std::string stem = names.layer_stem + names.in_layer.router;
    plan.want(&router, {stem + ".weight"}, {experts, hidden});
    plan.want(&router_bias, {stem + ".bias"}, {experts});
    const auto matrices = [&](at::Tensor* weight, at::Tensor* bias, const std::string& name, const Dimension& in,
                              const Dimension& out) {
        plan.want_experts(weight, names.layer_stem + name, experts, in, out);
        plan.want(bias, {names.layer_stem + name + "_bias"}, {experts, out}, Initial::bias);
    };
    matrices(&gate_up, &gate_up_bias, names.in_layer.expert_gate_up, hidden, both);
    matrices(&down, &down_bias, names.in_layer.expert_down, inner, hidden);
}

}  // namespace headscope::model
