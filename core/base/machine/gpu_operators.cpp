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
    const char* const reason = dlerror();
    const std::string name = library, why = reason == nullptr ? "no reason is given" : reason;
    return "no " + (why.starts_with(name + ": ") ? why : name + ": " + why);
}

}  // namespace headscope
