// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The backend of operators and the device of models, by --device, --kernels and HEADSCOPE_KERNELS.

#include <string>
#include <vector>

#include "core/base/machine/gpu_driver.h"

namespace headscope::app {

/// Refuses a backend that this machine lacks in the environment's HEADSCOPE_KERNELS, else takes it. For commands that
/// run kernels.
void check_kernel_environment();

/// The place of this process among those of its machine that compute together.
struct MachineShare {
    int index = 0;
    int processes = 1;
};

/// Chooses the backend of operators. `device` is --device, or the job key that `place` names; a GPU that cannot be used
/// is one Error. Models that are read afterwards move to the GPU where LibTorch can use it. Prints a line on standard
/// error for a GPU, with the part of the work that it does, and for "auto". Of several processes each takes the GPU of
/// its index, unless `device` names one. Not while an operator runs.
void choose_kernels(const std::string& kernels, const std::string& device, const std::string& place = "--device",
                    const MachineShare& share = {});

/// A GPU for the window's list.
struct ListedGpu {
    std::string choice;   ///< as --device takes it: "cuda:0"
    GpuDevice device;     ///< with free memory
    std::string problem;  ///< why this build cannot use it; empty if it can
};

/// The GPUs of all vendors. Takes up to seconds. Threads: any.
std::vector<ListedGpu> list_gpus();

}  // namespace headscope::app
