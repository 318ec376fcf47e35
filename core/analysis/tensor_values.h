// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/model/batch.h"
#include "core/store/analysis/analysis_header.h"
#include "core/tokenizer/hashed/settings.h"
#include "kernels/tensor_view.h"

namespace headscope::analysis {

/// The values of any floating tensor as contiguous float32.
std::vector<float> float_values(const at::Tensor& tensor);

/// The same tensor in a type that kernels take (float32 or bfloat16) and with unit stride in its last dimension.
at::Tensor kernel_tensor(const at::Tensor& tensor);
/// [B, heads, L, size]; valid while the tensor lives.
kernels::TensorView kernel_view(const at::Tensor& tensor);

/// L2 norm, and variance with divisor size - 1, over the last dimension: float32, row-major over the others. A
/// variance over one value is NaN.
struct VectorStatistics {
    std::vector<float> norm, variance;
};
VectorStatistics vector_statistics(const at::Tensor& vectors);

/// Sequences of one length as [B, L] ids, with their targets of one length where there are any, and `with_types` with
/// the token types of pairs; for a hash embedding with what it reads of the words.
model::Batch make_batch(const std::vector<store::SequenceTokens>& all,
                        const std::vector<store::SequenceTokens>& targets, std::span<const std::int64_t> chosen,
                        bool with_types, const tokenizer::HashSettings& hashed);

}  // namespace headscope::analysis
