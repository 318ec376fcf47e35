// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/tensor_values.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/var.h>
#include <ATen/ops/zeros_like.h>

#include "core/model/embedding/hash_features.h"

namespace headscope::analysis {

std::vector<float> float_values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kFloat).contiguous();
    const float* first = flat.const_data_ptr<float>();
    return {first, first + flat.numel()};
}

at::Tensor kernel_tensor(const at::Tensor& tensor) {
    const bool known = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
    const at::Tensor typed = known ? tensor : tensor.to(at::kFloat);
    return typed.stride(-1) == 1 ? typed : typed.contiguous();
}

kernels::TensorView kernel_view(const at::Tensor& tensor) {
    const bool bfloat16 = tensor.scalar_type() == at::kBFloat16;
    return {tensor.const_data_ptr(), bfloat16 ? kernels::ElementType::bfloat16 : kernels::ElementType::float32,
            tensor.size(0),          tensor.size(1),
            tensor.size(2),          tensor.size(3),
            tensor.stride(0),        tensor.stride(1),
            tensor.stride(2)};
}

VectorStatistics vector_statistics(const at::Tensor& vectors) {
    const bool exact = vectors.scalar_type() == at::kFloat || vectors.scalar_type() == at::kDouble;
    const at::Tensor values = exact ? vectors : vectors.to(at::kFloat);
    const std::int64_t last[] = {-1};
    return {float_values(at::linalg_vector_norm(values, 2, last)), float_values(at::var(values, last, at::Scalar(1)))};
}

namespace {

at::Tensor ids_of(const std::vector<store::SequenceTokens>& all, std::span<const std::int64_t> chosen) {
    const auto& first = all.at(static_cast<std::size_t>(chosen.front()));
    const auto length = static_cast<std::int64_t>(first.ids.size());
    at::Tensor together = at::empty({static_cast<std::int64_t>(chosen.size()), length}, at::kLong);
    auto* to = together.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t s : chosen) {
        const auto& ids = all.at(static_cast<std::size_t>(s)).ids;
        to = std::copy(ids.begin(), ids.end(), to);
    }
    return together;
}

}  // namespace

model::Batch make_batch(const std::vector<store::SequenceTokens>& all,
                        const std::vector<store::SequenceTokens>& targets, std::span<const std::int64_t> chosen,
                        bool with_types, const tokenizer::HashSettings& hashed) {
    model::Batch batch;
    batch.ids = ids_of(all, chosen);
    if (!targets.empty()) batch.target = ids_of(targets, chosen);
    std::vector<at::Tensor> features;
    for (const std::int64_t s : chosen) {
        const store::SequenceTokens& one = all.at(static_cast<std::size_t>(s));
        const at::Tensor own = model::stored_features(hashed, one.ids, one.pieces, one.hashes);
        if (own.defined()) features.push_back(own);
    }
    if (!features.empty()) batch.features = at::cat(features);
    for (std::size_t row = 0; with_types && row < chosen.size(); ++row) {
        const auto& types = all.at(static_cast<std::size_t>(chosen[row])).types;
        if (types.empty()) continue;
        if (!batch.token_types.defined()) batch.token_types = at::zeros_like(batch.ids);
        std::copy(
            types.begin(), types.end(),
            batch.token_types.mutable_data_ptr<std::int64_t>() + static_cast<std::int64_t>(row) * batch.ids.size(1));
    }
    return batch;
}

}  // namespace headscope::analysis
