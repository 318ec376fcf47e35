// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"

#include "kernels/backend.h"

namespace headscope::model {

at::Tensor for_kernel(const at::Tensor& tensor) {
    // LibTorch calls AMD's GPUs cuda, too.
    const auto reads_gpu = [] {
        const std::string backend = kernels::chosen_backend();
        return backend == "cuda" || backend == "hip";
    };
    return tensor.defined() && tensor.is_cuda() && reads_gpu() ? tensor : on_processor(tensor);
}

}  // namespace headscope::model
