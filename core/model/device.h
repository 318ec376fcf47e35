// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tensors of a model that lies on another device (Model::to), where code of the processor and kernels read them.
// Nothing is copied that is there already. Threads: any.

#include <ATen/core/Tensor.h>

#include "kernels/tensor_view.h"

namespace headscope::model {

/// `tensor` in memory of the processor. Undefined ones stay undefined, here and below.
inline at::Tensor on_processor(const at::Tensor& tensor) {
    return !tensor.defined() || tensor.is_cpu() ? tensor : tensor.cpu();
}

inline at::Tensor on_device(const at::Tensor& tensor, const at::Device& device) {
    return !tensor.defined() || tensor.device() == device ? tensor : tensor.to(device);
}

/// True if kernels read `tensor` where it is: on the processor, or on a GPU whose backend is the chosen one.
bool in_kernel_memory(const at::Tensor& tensor);

/// `tensor` where the operators of kernels/operators.h read it: in GPU memory if the chosen backend is that GPU's, else
/// in memory of the processor. Inputs of one call that lie on one device stay on one.
at::Tensor for_kernel(const at::Tensor& tensor);

/// The memory of a tensor that is in_kernel_memory().
inline kernels::Device kernel_device(const at::Tensor& tensor) {
    return tensor.is_cpu() ? kernels::Device::cpu : kernels::Device::gpu;
}

/// Waits for all work of a device that was queued. Before a reading of the clock: LibTorch's operators on a GPU return
/// early.
void finish_work(const at::Device& device);

/// Copies what a kernel wrote to for_kernel(tensor) back.
inline void give_back(const at::Tensor& tensor, const at::Tensor& written) {
    if (tensor.defined() && !written.is_same(tensor)) tensor.copy_(written);
}

}  // namespace headscope::model
