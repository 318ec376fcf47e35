// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The GPUs of this machine, by the vendor's driver library, which is opened at run time and stays open.

#include <string>
#include <vector>

namespace headscope {

enum class GpuKind { cuda, hip };

const char* gpu_kind_name(GpuKind kind);    ///< "cuda", "hip"
const char* gpu_vendor_name(GpuKind kind);  ///< "NVIDIA", "AMD"

struct GpuDevice {
    std::string name;          ///< printable ASCII
    int major = 0, minor = 0;  ///< compute capability
    double memory = 0;         ///< bytes
    double free_memory = -1;   ///< bytes; -1: not measured
    GpuKind kind = GpuKind::cuda;
    std::string gfx;  ///< AMD's name of the architecture, "gfx90a"; empty: not known

    /// "sm_90"; of AMD "gfx90a", or "gfx90" of version 9.0 where the driver has no name.
    std::string architecture() const;
};

struct GpuDriver {
    std::string library;  ///< opened, or looked for
    std::string version;  ///< of CUDA or HIP: "13.0"; empty without a library
    std::vector<GpuDevice> devices;
    std::string problem;  ///< why there are no devices: "no driver library libcuda.so.1: ..."; else empty
};

/// Looks for libcuda.so.1 or libamdhip64.so, or for the library that HEADSCOPE_CUDA_DRIVER or HEADSCOPE_HIP_DRIVER
/// names. Reports every failure in `problem`. `free_memory` creates a context on each device, which takes up to a
/// second. Threads: any.
GpuDriver find_gpus(GpuKind kind, bool free_memory = false);

}  // namespace headscope
