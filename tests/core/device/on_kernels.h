// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/core/device/emulated_device.h"
#include "tests/kernels/emulator_case.h"

namespace headscope::test {

/// Kernels of the emulator take tensors of the emulated device while this lives.
struct OnKernels {
    kernels::testing::ForcedBackend backend{"emulator"};
    OpenDeviceMemory memory;
};

}  // namespace headscope::test
