// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/experts.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

#include "core/model/blocks.h"
#include "core/model/device.h"
#include "core/model/wide_product.h"

namespace headscope::model {
namespace {

/// Rows that go through the experts together: enough for whole matrix products even where many experts share them.
constexpr std::int64_t kRows = 4096;

/// The first of the names under which the file has experts, else the first.
const ExpertNames& present(const TensorPlan& plan, const TensorNames& names) {
    const std::vector<ExpertNames>& all = names.in_layer.experts;
    const auto found = std::find_if(all.begin(), all.end(), [&](const ExpertNames& one) {
        const std::string& each = one.gate.empty() ? one.up : one.gate;
        const std::string first = one.gate_up.empty() ? numbered(each, 0) + ".weight" : one.gate_up;
        return plan.has(names.layer_stem + first);
    });
    return found == all.end() ? all.front() : *found;
}

/// rows weight + bias, weight [in, out].
at::Tensor biased(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) {
    const bool widened = rows.scalar_type() == at::kBFloat16 && !multiplies_bfloat16(rows.device());
    return widened ? linear_map(rows, weight.t(), bias) : at::addmm(bias, rows, weight);
}

}  // namespace

at::Tensor Experts::operator()(const at::Tensor& x, const Cancellation* cancellation, Routing* taken) const {
    const at::Tensor rows = x.reshape({-1, x.size(-1)});
    std::vector<at::Tensor> parts, chosen, shares;
    for (std::int64_t first = 0; first < rows.size(0); first += kRows) {
        const at::Tensor here = rows.narrow(0, first, std::min(kRows, rows.size(0) - first));
        const Routing of_token = route(here);
        parts.push_back(of_rows(here, of_token, cancellation));
        if (!taken) continue;
        chosen.push_back(of_token.chosen);
        shares.push_back(of_token.shares);
    }
    if (taken) {
        std::vector<std::int64_t> shape = x.sizes().vec();
        shape.back() = per_token;
        *taken = {at::cat(chosen).view(shape), at::cat(shares).view(shape)};
    }
    return (parts.size() == 1 ? parts.front() : at::cat(parts)).view(x.sizes());
}

/// [N, E], true for experts of groups that the row has none of.
at::Tensor Experts::outside_best_groups(const at::Tensor& scores) const {
    const at::Tensor grouped = scores.unflatten(-1, {routing.groups, -1});
    const at::Tensor worth = std::get<0>(at::topk(grouped, routing.best_of_group)).sum(-1);
    const at::Tensor best = std::get<1>(at::topk(worth, routing.groups_per_token));
    return at::ones_like(worth, at::kBool).scatter(-1, best, false).unsqueeze(-1).expand_as(grouped).flatten(-2);
}

Routing Experts::route(const at::Tensor& rows) const {
    const bool widened = routing.wide && rows.scalar_type() == at::kBFloat16;
    const at::Tensor logits =
        widened ? at::linear(rows.to(at::kFloat), router.to(at::kFloat)) : at::linear(rows, router, router_bias);
    // The order of logits is that of their softmax.
    const at::Tensor scores = routing.sigmoid ? at::sigmoid(logits) : logits;
    at::Tensor deciding = choice_bias.defined() ? scores + choice_bias : scores;
    if (routing.groups > 1) {
        deciding = deciding.masked_fill(outside_best_groups(deciding), -std::numeric_limits<double>::infinity());
    }
    const auto [highest, chosen] = at::topk(deciding, per_token);
    at::Tensor shares;
    if (routing.sigmoid) {
        shares = scores.gather(-1, chosen);
        if (shares_of_chosen) shares = shares / (shares.sum(-1, true) + 1e-20);
    } else {
        shares = shares_of_chosen ? at::softmax(highest, -1) : at::softmax(logits, -1).gather(-1, chosen);
    }
    return {chosen, routing.scale == 1 ? shares : shares * routing.scale};
}

at::Tensor Experts::of_rows(const at::Tensor& rows, const Routing& of_token, const Cancellation* cancellation) const {
    const at::Tensor chosen = of_token.chosen.flatten();
    const at::Tensor shares = of_token.shares.to(rows.scalar_type()).flatten();
    // Pairs of a token and one of its experts, in the order of the experts: each expert's share is one piece.
    const at::Tensor order = at::argsort(chosen, true, 0);
    const at::Tensor tokens = at::floor_divide(order, per_token);
    const at::Tensor counts = at::bincount(on_processor(chosen), {}, router.size(0));
    std::vector<std::int64_t> used;
    for (std::int64_t expert = 0; expert < router.size(0); ++expert)
        if (counts.const_data_ptr<std::int64_t>()[expert] > 0) used.push_back(expert);
    at::Tensor sum = at::zeros_like(rows);
    std::int64_t done = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
        const std::int64_t expert = used[i], count = counts.const_data_ptr<std::int64_t>()[expert];
        if (cancellation) cancellation->check();
        if (loader) loader->load(expert, i + 1 < used.size() ? used[i + 1] : -1, cancellation);
        const at::Tensor here = tokens.narrow(0, done, count);
        const at::Tensor share = shares.index_select(0, order.narrow(0, done, count)).unsqueeze(1);
        const at::Tensor read = rows.index_select(0, here);
        sum.index_add_(0, here,
                       routing.weighs_input ? of_expert(expert, read * share) : of_expert(expert, read) * share);
        done += count;
    }
    return sum;
}

at::Tensor Experts::terms(const at::Tensor& row, Routing& taken) const {
    taken = route(row);
    std::vector<at::Tensor> terms;
    for (std::int64_t k = 0; k < per_token; ++k) {
        const auto expert = taken.chosen[0][k].item<std::int64_t>();
        if (loader) loader->load(expert, -1, nullptr);
        const at::Tensor share = taken.shares[0][k].to(row.scalar_type());
        terms.push_back(routing.weighs_input ? of_expert(expert, row * share) : of_expert(expert, row) * share);
    }
    return at::cat(terms);
}

at::Tensor Experts::of_expert(std::int64_t expert, const at::Tensor& rows) const {
    // An expert that is not resident is filled on the processor.
    const auto own = [&](const at::Tensor& all) { return on_device(all.select(0, expert), rows.device()); };
    if (limit > 0) {
        const at::Tensor inner = biased(rows, own(gate_up), gate_up_bias.select(0, expert));
        const at::Tensor halves = inner.unflatten(-1, {-1, 2});
        const at::Tensor gate = halves.select(-1, 0).clamp_max(limit);
        const at::Tensor up = halves.select(-1, 1).clamp(-limit, limit);
        return biased((up + 1) * (gate * at::sigmoid(gate * slope)), own(down), down_bias.select(0, expert));
    }
    const std::int64_t all = router.size(0), size = rows.size(-1);
    const at::Tensor inner =
        input_first ? linear_map(rows, own(gate_up).t()) : linear_map(rows, own(gate_up.view({all, -1, size})));
    const std::int64_t half = inner.size(-1) / 2;
    const at::Tensor both = gated ? activate(activation, inner.narrow(-1, 0, half)) * inner.narrow(-1, half, half)
                                  : activate(activation, inner);
    if (input_first) return linear_map(both, own(down).t());
    return linear_map(both, own(down.view({all, size, -1})));
}

void Experts::declare(TensorPlan& plan, const TensorNames& names) {
    const ModelConfig& config = plan.config();
    const SizeKeys& keys = plan.keys();
    const Dimension experts{config.experts, keys.experts};
    const Dimension hidden{config.hidden, keys.hidden};
    const Dimension inner{config.expert_size(),
                          config.expert_feed_forward > 0 ? keys.expert_feed_forward : keys.feed_forward};
    const ExpertNames& own = present(plan, names);
    per_token = config.experts_per_token;
    shares_of_chosen = config.expert_shares_of_chosen;
    activation = config.activation;
    gated = config.gated_feed_forward;
    limit = config.expert_limit;
    slope = config.expert_slope;
    routing = config.routing;
    input_first = own.input_first;
    plan.want(&router, {names.layer_stem + own.router + ".weight"}, {experts, hidden});
    if (routing.choice_bias)
        plan.want_number(&choice_bias, names.layer_stem + own.choice_bias, {experts}, 0, Initial::fixed);
    if (limit > 0) return declare_gpt_oss(plan, names, own);
    if (!own.gate_up.empty()) {
        const Dimension both = gated ? Dimension{2 * inner.size, "2 * " + inner.keys} : inner;
        const auto matrices = [&](at::Tensor* into, const std::string& name, const Dimension& out,
                                  const Dimension& in) {
            plan.want(into, {names.layer_stem + name}, {experts, input_first ? in : out, input_first ? out : in});
            plan.allow_experts(&loader);
        };
        matrices(&gate_up, own.gate_up, both, hidden);
        matrices(&down, own.down, hidden, inner);
        return;
    }
    for (std::int64_t expert = 0; expert < experts.size; ++expert) {
        const auto part = [&](at::Tensor* into, const std::string& name, const Dimension& out, const Dimension& in,
                              std::int64_t index, std::int64_t count) {
            plan.want_rows(into, names.layer_stem + numbered(name, expert) + ".weight", {out, in}, index * out.size,
                           count * out.size);
            plan.allow_experts(&loader, expert);
        };
        const std::int64_t maps = gated ? 2 : 1;
        if (gated) part(&gate_up, own.gate, inner, hidden, 2 * expert, 2 * experts.size);
        part(&gate_up, own.up, inner, hidden, maps * expert + maps - 1, maps * experts.size);
        part(&down, own.down, hidden, inner, expert, experts.size);
    }
}

void Experts::declare_gpt_oss(TensorPlan& plan, const TensorNames& names, const ExpertNames& own) {
    const ModelConfig& config = plan.config();
    const SizeKeys& keys = plan.keys();
    const Dimension experts{config.experts, keys.experts};
    const Dimension hidden{config.hidden, keys.hidden};
    const Dimension inner{config.feed_forward, keys.feed_forward};
    const Dimension both{2 * config.feed_forward, "2 * " + keys.feed_forward};
    plan.want(&router_bias, {names.layer_stem + own.router + ".bias"}, {experts});
    const auto matrices = [&](at::Tensor* weight, at::Tensor* bias, const std::string& name, const Dimension& in,
                              const Dimension& out) {
        plan.want(weight, {names.layer_stem + name}, {experts, in, out});
        plan.allow_experts(&loader);
        plan.want(bias, {names.layer_stem + name + "_bias"}, {experts, out}, Initial::bias);
    };
    matrices(&gate_up, &gate_up_bias, own.gate_up, hidden, both);
    matrices(&down, &down_bias, own.down, inner, hidden);
}

}  // namespace headscope::model
