// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "kernels/backend.h"

namespace headscope::model {

bool in_kernel_memory(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return true;
    const std::string backend = kernels::chosen_backend();
    // LibTorch calls AMD's GPUs cuda, too. An emulator reads a device of tests.
    if (tensor.is_cuda()) return backend == "cuda" || backend == "hip";
    return tensor.is_privateuseone() && backend.starts_with("emulator");
}

void finish_work(const at::Device& device) {
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

at::Tensor for_kernel(const at::Tensor& tensor) {
    return tensor.defined() && in_kernel_memory(tensor) ? tensor : on_processor(tensor);
}

}  // namespace headscope::model
