// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tensors [B, heads, L, size] of float32 or bfloat16 as the kernels name them.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "core/model/device.h"
#include "kernels/attention_backward.h"
#include "kernels/tensor_view.h"

namespace headscope::mixers {

inline at::Tensor unit_stride(const at::Tensor& tensor) {
    return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

/// `tensor` as kernels read it: with unit stride, in memory that they reach.
inline at::Tensor kernel_operand(const at::Tensor& tensor) {
    return unit_stride(model::for_kernel(tensor));
}

/// `tensor` has unit stride in its last dimension and is on the processor or comes from model::for_kernel().
inline kernels::TensorView view_of(const at::Tensor& tensor) {
    kernels::TensorView view;
    view.data = tensor.const_data_ptr();
    view.type = tensor.scalar_type() == at::kBFloat16 ? kernels::ElementType::bfloat16 : kernels::ElementType::float32;
    view.batch = tensor.size(0);
    view.heads = tensor.size(1);
    view.length = tensor.size(2);
    view.size = tensor.size(3);
    view.batch_stride = tensor.stride(0);
    view.head_stride = tensor.stride(1);
    view.row_stride = tensor.stride(2);
    view.device = model::kernel_device(tensor);
    return view;
}

/// Undefined: not wanted.
inline kernels::MutableView target_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return {};
    const auto type =
        tensor.scalar_type() == at::kBFloat16 ? kernels::ElementType::bfloat16 : kernels::ElementType::float32;
    return {tensor.mutable_data_ptr(), type, tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

/// [B, H, L, size] of what lies side by side, [B, L, H * size]; a view.
inline at::Tensor as_heads(const at::Tensor& output, std::int64_t heads) {
    return output.unflatten(2, {heads, output.size(2) / heads}).transpose(1, 2);
}

/// A new [B, heads, L, size] that lies so.
inline at::Tensor new_heads(const at::Tensor& like, std::int64_t heads, std::int64_t length, std::int64_t size) {
    return at::empty({like.size(0), length, heads, size}, like.options()).transpose(1, 2);
}

/// The other way.
inline at::Tensor side_by_side(const at::Tensor& heads) {
    return heads.transpose(1, 2).flatten(2);
}

/// States of a cache that a kernel reads and writes: copies of those that it does not reach.
class KernelStates {
public:
    explicit KernelStates(std::vector<at::Tensor> states) : states_(std::move(states)) {
        for (const at::Tensor& one : states_) reached_.push_back(model::for_kernel(one));
    }
    /// Null for a state that is undefined, or absent.
    float* floats(std::size_t index) const {
        const bool has = index < reached_.size() && reached_[index].defined();
        return has ? reached_[index].mutable_data_ptr<float>() : nullptr;
    }
    /// Copies what the kernel wrote back.
    void give_back() const {
        for (std::size_t i = 0; i < states_.size(); ++i) model::give_back(states_[i], reached_[i]);
    }

private:
    std::vector<at::Tensor> states_, reached_;
};

inline std::int64_t bytes_of(const at::Tensor& held) {
    return held.defined() ? static_cast<std::int64_t>(held.nbytes()) : 0;
}

/// A cache's numbers, cloned; undefined where it holds none.
inline at::Tensor copied(const at::Tensor& held) {
    return held.defined() ? held.clone() : held;
}

/// A cache's numbers [B, ..] of the sequences [n] int64; undefined where it holds none.
inline at::Tensor of_sequences(const at::Tensor& held, const at::Tensor& sequences) {
    return held.defined() ? held.index_select(0, model::on_device(sequences, held.device())) : held;
}

}  // namespace headscope::mixers
