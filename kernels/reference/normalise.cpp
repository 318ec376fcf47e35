// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/normaliser.h"
#include "kernels/reference/dense.h"

namespace headscope::kernels::reference {
namespace {

/// Threshold of the projection onto the simplex (Martins & Astudillo 2016, algorithm 1), [.., Lq]. z: [.., Lq, n].
at::Tensor sparsemax_threshold(const at::Tensor& z) {
    const at::Tensor sorted = std::get<0>(z.sort(-1, /*descending=*/true));
    const at::Tensor sums = sorted.cumsum(-1);
    const at::Tensor rank = at::arange(1, z.size(-1) + 1, z.options());
    const at::Tensor support = (sorted * rank + 1.0 > sums).sum(-1, /*keepdim=*/true).clamp_min(1);
    return ((sums.gather(-1, support - 1) - 1.0) / support).squeeze(-1);
}

NormalisedScores taylor(const NormaliserTraits& traits, const at::Tensor& score, const at::Tensor& allowed,
                        const at::Tensor& second_order) {
    const at::Tensor forbidden = allowed.logical_not();
    const at::Tensor first = score.masked_fill(forbidden, 0.0), ones = allowed.to(score.scalar_type());
    const at::Tensor second = second_order.defined() ? second_order.masked_fill(forbidden, 0.0) : first * first * 0.5;
    // A row that sees no key has sums of 0 and weights of 0.
    const at::Tensor empty = forbidden.all(-1, /*keepdim=*/true);
    const auto sum_of = [&](const at::Tensor& terms) { return terms.sum(-1, true).masked_fill(empty, 1.0); };
    if (traits.per_order) {
        const at::Tensor sum = sum_of(second);
        return {ones / sum_of(ones) + first / sum_of(first) + second / sum, sum.squeeze(-1), {}};
    }
    const at::Tensor terms = ones + first + second, sum = sum_of(terms);
    return {terms / sum, sum.squeeze(-1), {}};
}

}  // namespace

NormalisedScores normalise(Normaliser normaliser, const at::Tensor& score, const at::Tensor& allowed,
                           const at::Tensor& sink, const at::Tensor& second) {
    const NormaliserTraits& traits = traits_of(normaliser);
    if (traits.terms == Terms::taylor) return taylor(traits, score, allowed, second);
    if (traits.terms == Terms::sigmoid)
        return {at::sigmoid(score).masked_fill(allowed.logical_not(), 0.0), at::zeros_like(score.select(-1, 0)), {}};
    at::Tensor candidates = score, logit;
    if (sink.defined()) {
        std::vector<std::int64_t> shape = score.sizes().vec();
        shape.back() = 1;
        logit = sink.to(score.scalar_type()).expand(shape);
        candidates = at::cat({score, logit}, -1);
    }
    const bool exponential = traits.terms == Terms::exponential;
    const at::Tensor constant = exponential ? candidates.logsumexp(-1) : sparsemax_threshold(candidates);
    const auto weigh = [&](const at::Tensor& s) {
        const at::Tensor above = s - constant.unsqueeze(-1);
        return exponential ? above.exp() : above.clamp_min(0.0);
    };
    NormalisedScores found{weigh(score).masked_fill(allowed.logical_not(), 0.0), constant, {}};
    if (logit.defined()) found.sink_share = weigh(logit).squeeze(-1);
    return found;
}

}  // namespace headscope::kernels::reference
