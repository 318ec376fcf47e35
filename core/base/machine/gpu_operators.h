// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// LibTorch's operators for GPUs: a library of their own, which nothing links.

#include <string>

#include "core/base/machine/gpu_driver.h"

namespace headscope {

/// "libtorch_cuda.so", "libtorch_hip.so"
const char* gpu_operators_library(GpuKind kind);

/// Opens the library where the search path of this program finds it; it stays open. Call it before LibTorch is first
/// asked about CUDA: LibTorch does not look again. Returns why it cannot be opened, "no libtorch_cuda.so: ..."; empty
/// if it is open. Takes a second and 500 MB.
std::string open_gpu_operators(const char* library);

}  // namespace headscope
