// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// --device and its job key: the processor, one GPU, or what the machine has.

#include <optional>
#include <string>

#include "core/base/machine/gpu_driver.h"
#include "core/base/option.h"

namespace headscope {

struct DeviceChoice {
    bool automatic = false;
    std::optional<GpuKind> gpu = {};  ///< none: the processor, unless automatic
    bool numbered = false;            ///< cuda:N, not cuda
    int index = 0;                    ///< among the GPUs of its driver
};

/// The row of the option "device" wherever one is read; its default is cpu.
const Option& device_option();

/// Throws usage unless `text` is auto, cpu, cuda, cuda:N, hip or hip:N.
DeviceChoice read_device(const std::string& text, const std::string& place);

}  // namespace headscope
