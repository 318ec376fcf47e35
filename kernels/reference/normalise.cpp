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

/// Threshold of entmax with alpha = 1.5 (Peters et al. 2019, algorithm 2), in units of the score, [.., Lq]. Of the k
/// largest halves it is their mean less the root of what their spread leaves of 1; the support is the largest k whose
/// smallest half lies above that. From the row's maximum, so that masked scores far below cost no digits.
at::Tensor entmax_threshold(const at::Tensor& z) {
    const at::Tensor maximum = std::get<0>(z.max(-1, /*keepdim=*/true));
    const at::Tensor shift = maximum.masked_fill(maximum.isinf(), 0.0).detach();
    // Below the maximum less 2 no score has a weight; cut there, none spoils the sums of squares.
    const at::Tensor sorted = std::get<0>(((z - shift) * 0.5).clamp_min(-2.0).sort(-1, /*descending=*/true));
    const at::Tensor rank = at::arange(1, z.size(-1) + 1, z.options());
    const at::Tensor mean = sorted.cumsum(-1) / rank;
    const at::Tensor spread = sorted.square().cumsum(-1) - rank * mean.square();
    const at::Tensor left = (1.0 - spread) / rank;
    // The root of exactly 0 has no slope; such a k is not chosen.
    const at::Tensor threshold = mean - left.clamp_min(1e-300).sqrt();
    const at::Tensor fits = (left >= 0.0) & (threshold <= sorted);
    const at::Tensor support = fits.sum(-1, /*keepdim=*/true).clamp_min(1);
    return 2.0 * threshold.gather(-1, support - 1).squeeze(-1) + shift.squeeze(-1);
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

at::Tensor row_offsets(OffsetForm form, const at::Tensor& offsets, const at::Tensor& allowed) {
    if (!offsets.defined()) return {};
    const at::Tensor by_head = offsets.view({-1, 1, 1});
    const at::Tensor seen = allowed.sum(-1, /*keepdim=*/true);
    if (form == OffsetForm::constant) return by_head * (seen > 0);
    return by_head / seen.clamp_min(1);
}

NormalisedScores normalise(Normaliser normaliser, const at::Tensor& score, const at::Tensor& allowed,
                           const at::Tensor& sink, const at::Tensor& second, const at::Tensor& offset) {
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
    const at::Tensor constant = traits.terms == Terms::threshold ? sparsemax_threshold(candidates)
                                : traits.terms == Terms::square  ? entmax_threshold(candidates)
                                                                 : candidates.logsumexp(-1);
    const auto weigh = [&](const at::Tensor& s) {
        const at::Tensor above = s - constant.unsqueeze(-1);
        if (traits.terms == Terms::threshold) return above.clamp_min(0.0);
        if (traits.terms == Terms::square) return (0.5 * above.clamp_min(0.0)).square();
        // Not clamp_min, whose derivative at 0 is 1: a weight of 0 is not kept.
        return traits.terms == Terms::elastic ? (above.exp() + offset).relu() : above.exp();
    };
    NormalisedScores found{weigh(score).masked_fill(allowed.logical_not(), 0.0), constant, {}};
    if (logit.defined()) found.sink_share = weigh(logit).squeeze(-1);
    return found;
}

}  // namespace headscope::kernels::reference
