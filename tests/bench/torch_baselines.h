// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LibTorch's ways to do the same work, three of them. All on float32 [H, L, d], causal, scale d^-1/2.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace headscope::bench {

/// The products that a full analysis cannot avoid: Q K^T twice and A V once, over row blocks of `rows` queries against
/// the keys up to the block's last, into memory that is reused. Nothing else: no mask, no softmax.
class CausalGemms {
public:
    CausalGemms(at::Tensor q, at::Tensor k, at::Tensor v, std::int64_t rows);
    void run();
    /// Pairs that run() multiplies, a head; the diagonal blocks are done whole.
    double pairs() const;

private:
    at::Tensor q_, k_transposed_, v_, scores_, output_;
    std::int64_t rows_;
};

/// Everything at once: the L x L matrix of all heads, softmax, output, and the indicators formula by formula.
double eager_analysis(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// As one would write it with care: blocks of 64 rows, keys beyond the diagonal skipped, one exponential a pair,
/// entropy from the row's normaliser, spread across heads from mean and mean square (torch.std is much slower).
double tiled_analysis(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace headscope::bench
