// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// GPU libraries (kernels/gpu/plugin.h) and the GPU memory of their calls, for the program that chooses a device.

#include <string>
#include <string_view>

namespace headscope::kernels {

/// True if code for a list of architectures, "sm_80+sm_90", runs on one: code for sm_80 runs on newer cards of the same
/// first number, too, code for sm_90a on sm_90 alone. True where either is not known.
bool runs_on(std::string_view architectures, std::string_view device);

/// Why the library of "cuda" or "hip" does not run on a device, "sm_90" or "gfx90a", as gpu_problem() of
/// kernels/backend.h; empty if it does. Threads: any.
std::string architecture_problem(const std::string& name, const std::string& architecture);

/// The first operator that the library of "cuda" or "hip" has no kernel for: "attention backward". Empty: none is
/// missing, or there is no library. Threads: any.
std::string missing_kernel(const std::string& name);

/// Releases GPU memory that no call and no tensor uses: kept blocks of calls, and LibTorch's cache. Threads: any.
void release_unused_gpu_memory();

}  // namespace headscope::kernels
