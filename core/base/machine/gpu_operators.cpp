// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/gpu_operators.h"

#include "core/base/machine/shared_library.h"

namespace headscope {

const char* gpu_operators_library(GpuKind kind) {
    return kind == GpuKind::cuda ? "libtorch_cuda.so" : "libtorch_hip.so";
}

std::string open_gpu_operators(const char* library) {
    // Global: its symbols serve the libraries that it loads later (cuDNN, NCCL).
    return open_shared_library(library, true).problem;
}

}  // namespace headscope
