// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The device that models are moved to when they are read (Model::to): the processor, or a GPU where LibTorch's library
// for it can be opened. Threads: set by the one that reads models; read by any.

#include <string>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "core/base/machine/gpu_driver.h"

namespace headscope::model {

at::Device model_device();

/// Moves the models that are read from now on to a GPU: opens LibTorch's library for it and sets LibTorch to operators
/// that give the same bits on every run. Returns why LibTorch cannot use the GPU; models then stay on the processor.
/// Empty if it can.
std::string take_gpu_for_models(GpuKind kind, int index);
/// Moves the models that are read from now on to a device that LibTorch has.
void move_models_to(const at::Device& device);
/// Models stay on the processor from now on.
void leave_gpu_of_models();

/// "model" if models are moved to the chosen GPU, "operators" if it runs single operators on copies of their operands,
/// empty without a GPU.
std::string gpu_part();
/// Sets the device's keys of a file's settings: "device", "kernels" for numbers of type `dtype`, and gpu_part() as
/// "on_device" unless it is empty.
void store_device(nlohmann::json& settings, const std::string& dtype);

/// Bytes free on model_device() by its driver; 0 for the processor and where the driver does not say.
double model_device_room();

/// Throws Error(memory) if `bytes` and a reserve are more than `room`, 0 for unknown, which refuses nothing. `advice`
/// is a way to take less: "shorten --length".
void expect_device_memory(const std::string& what, double bytes, const std::string& advice,
                          double room = model_device_room());
/// The comparison of expect_device_memory().
bool fits_on_device(double bytes, double room);
/// Bytes that fit with `bytes` more, or less than 0; infinity where the room is not known.
double device_room_after(double bytes, double room = model_device_room());

}  // namespace headscope::model
