// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/gpu_operators.h"

#include <dlfcn.h>

namespace headscope {

const char* gpu_operators_library(GpuKind kind) {
    return kind == GpuKind::cuda ? "libtorch_cuda.so" : "libtorch_hip.so";
}

std::string open_gpu_operators(const char* library) {
    // Global: its symbols serve the libraries that it loads later (cuDNN, NCCL).
    if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
    const char* const why = dlerror();
    return std::string("no ") + library + (why == nullptr ? "" : std::string(": ") + why);
}

}  // namespace headscope
