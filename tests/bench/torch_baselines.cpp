// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/torch_baselines.h"

#include <ATen/ATen.h>

#include <cmath>

namespace headscope::bench {

CausalGemms::CausalGemms(at::Tensor q, at::Tensor k, at::Tensor v, std::int64_t rows)
    : q_(std::move(q)), k_transposed_(k.transpose(1, 2)), v_(std::move(v)), rows_(rows) {
    scores_ = at::empty({q_.size(0) * rows * q_.size(1)});
    output_ = at::empty_like(v_);
}

void CausalGemms::run() {
    const std::int64_t heads = q_.size(0), length = q_.size(1);
    for (std::int64_t begin = 0; begin < length; begin += rows_) {
        const std::int64_t end = std::min(begin + rows_, length);
        at::Tensor scores = scores_.narrow(0, 0, heads * (end - begin) * end).view({heads, end - begin, end});
        const at::Tensor q = q_.slice(1, begin, end), k = k_transposed_.slice(2, 0, end);
        at::Tensor output = output_.slice(1, begin, end);
        at::bmm_out(scores, q, k);
        at::bmm_out(scores, q, k);
        at::bmm_out(output, scores, v_.slice(1, 0, end));
    }
}

double CausalGemms::pairs() const {
    double pairs = 0.0;
    for (std::int64_t begin = 0; begin < q_.size(1); begin += rows_) {
        const std::int64_t end = std::min(begin + rows_, q_.size(1));
        pairs += static_cast<double>((end - begin) * end);
    }
    return pairs;
}

double eager_analysis(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const std::int64_t length = q.size(1);
    const at::Tensor mask = at::ones({length, length}, at::kBool).triu(1);
    const at::Tensor scores = (at::matmul(q, k.transpose(1, 2)) * (1.0 / std::sqrt(static_cast<double>(q.size(2)))));
    const at::Tensor a = at::softmax(scores.masked_fill(mask, -INFINITY), -1);
    const at::Tensor output = at::matmul(a, v);
    double check = output.sum().item<double>();
    check += -(a * (a + 1e-12).log()).sum({1, 2}).sum().item<double>();
    check += (a * a).sum({1, 2}).sqrt().sum().item<double>();
    check += a.select(2, 0).mean(1).sum().item<double>();
    for (std::int64_t n = 0; n < 4; ++n) check += a.diagonal(-n, 1, 2).mean(1).sum().item<double>();
    check += a.std(0).sum().item<double>();
    check += a.sum(1).sum().item<double>();
    const at::Tensor position = at::arange(length, at::kFloat);
    check += (a * (position.unsqueeze(1) - position)).sum().item<double>();
    const at::Tensor allowed = scores.masked_select(mask.logical_not());
    check += allowed.min().item<double>() + allowed.max().item<double>() + allowed.var().item<double>();
    return check;
}

double tiled_analysis(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    constexpr std::int64_t rows = 64;
    const std::int64_t heads = q.size(0), length = q.size(1), size = q.size(2);
    const at::Tensor transposed = k.transpose(1, 2), scaled = q * (1.0 / std::sqrt(static_cast<double>(size)));
    const at::Tensor position = at::arange(length, at::kFloat), mask = at::ones({rows, rows}, at::kBool).triu(1);
    at::Tensor column_mass = at::zeros({heads, length}), buffer = at::empty({heads * rows * length});
    at::Tensor weights_buffer = at::empty({heads * rows * length}), output = at::empty({heads, length, size});
    double entropy = 0.0, squares = 0.0, spread = 0.0, sink = 0.0, local = 0.0, distance = 0.0, score_sum = 0.0;
    for (std::int64_t begin = 0; begin < length; begin += rows) {
        const std::int64_t end = std::min(begin + rows, length), n = end - begin;
        at::Tensor s = buffer.narrow(0, 0, heads * n * end).view({heads, n, end});
        at::Tensor p = weights_buffer.narrow(0, 0, heads * n * end).view({heads, n, end});
        at::bmm_out(s, scaled.slice(1, begin, end), transposed.slice(2, 0, end));
        score_sum += s.slice(2, 0, begin).sum().item<double>();
        score_sum += s.min().item<double>() + s.max().item<double>();
        s.slice(2, begin, end).masked_fill_(mask.slice(0, 0, n).slice(1, 0, n), -1e30);
        s.sub_(s.amax(-1, true));
        at::exp_out(p, s);
        const at::Tensor z = p.sum(-1, true);
        p.div_(z);
        entropy += (z.log().squeeze(-1) - (p * s.clamp_min(-150.0)).sum(-1)).sum().item<double>();
        squares += p.square().sum().item<double>();
        const at::Tensor mean = p.mean(0), mean_square = p.square().mean(0);
        spread += (mean_square - mean.square()).clamp_min(0.0).sqrt().sum().item<double>();
        sink += p.select(2, 0).sum().item<double>();
        for (std::int64_t x = 0; x < 4; ++x) local += p.diagonal(begin - x, 1, 2).sum().item<double>();
        const at::Tensor columns = p.sum(1);
        column_mass.slice(1, 0, end).add_(columns);
        distance += (at::matmul(p, position.slice(0, 0, end)).sum()).item<double>();
        at::Tensor rows_of_output = output.slice(1, begin, end);
        at::bmm_out(rows_of_output, p, v.slice(1, 0, end));
    }
    return entropy + squares + spread + sink + local + distance + score_sum + column_mass.sum().item<double>() +
           output.sum().item<double>();
}

}  // namespace headscope::bench
