// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/model_device.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/machine/gpu_operators.h"
#include "core/base/text/text.h"
#include "kernels/backend.h"
#include "kernels/gpu/libraries.h"

namespace headscope::model {
namespace {

constexpr double kDeviceReserve = 1.05;             ///< fragments of the allocator
constexpr double kDeviceWorkspace = 256ULL << 20U;  ///< of cuBLAS and of kernels

struct ChosenGpu {
    at::Device device = at::kCPU;
    GpuKind kind = GpuKind::cuda;
    int index = 0;
};

std::mutex models_gpu_mutex;
ChosenGpu models_gpu;

ChosenGpu chosen_gpu() {
    const std::lock_guard lock(models_gpu_mutex);
    return models_gpu;
}

void choose_gpu(const ChosenGpu& gpu) {
    const std::lock_guard lock(models_gpu_mutex);
    models_gpu = gpu;
}

/// LibTorch takes operators that give the same bits on every run, or any. Memory that nothing was written to yet keeps
/// what it holds: each of these operators writes all of its result.
void take_same_bits(bool taken) {
    at::globalContext().setDeterministicAlgorithms(taken, false);
    at::globalContext().setDeterministicFillUninitializedMemory(!taken);
}

std::string warning_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// Keeps the last warning, which LibTorch would print.
class LastWarning final : public c10::WarningHandler {
public:
    void process(const c10::Warning& warning) override { text = warning_line(warning.msg()); }
    std::string text;
};

/// Why LibTorch has no GPU of this index; empty if it has.
std::string missing_gpu(int index) {
    LastWarning warning;
    int count = 0;
    try {
        const c10::WarningUtils::WarningHandlerGuard guard(&warning);
        if (at::globalContext().hasCUDA()) count = at::detail::getCUDAHooks().deviceCount();
    } catch (const c10::Error& error) {
        return "LibTorch reports: " + warning_line(error.what_without_backtrace());
    }
    if (index < count) return {};
    if (!warning.text.empty()) return "LibTorch reports: " + warning.text;
    return "LibTorch finds " + std::to_string(count) + " GPUs";
}

}  // namespace

at::Device model_device() {
    return chosen_gpu().device;
}

std::string take_gpu_for_models(GpuKind kind, int index) {
    leave_gpu_of_models();
    if (const std::string problem = open_gpu_operators(gpu_operators_library(kind)); !problem.empty()) return problem;
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // before cuBLAS starts
    if (const std::string problem = missing_gpu(index); !problem.empty()) return problem;
    take_same_bits(true);
    // A ROCm LibTorch calls its GPUs cuda, too.
    choose_gpu({at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)), kind, index});
    return {};
}

void move_models_to(const at::Device& device) {
    choose_gpu({device, GpuKind::cuda, 0});
}

void leave_gpu_of_models() {
    take_same_bits(false);
    choose_gpu({});
}

std::string gpu_part() {
    if (kernels::chosen_device() == "cpu") return {};
    return model_device().is_cpu() ? "operators" : "model";
}

void store_device(nlohmann::json& settings, const std::string& dtype) {
    settings["device"] = kernels::chosen_device();
    settings["kernels"] = kernels::chosen_kernels(dtype);
    if (const std::string part = gpu_part(); !part.empty()) settings["on_device"] = part;
}

double model_device_room() {
    const ChosenGpu gpu = chosen_gpu();
    if (gpu.device.is_cpu()) return 0;
    kernels::release_unused_gpu_memory();  // LibTorch keeps memory of models that are gone
    const GpuDriver driver = find_gpus(gpu.kind, true);
    const auto index = static_cast<std::size_t>(gpu.index);
    return index < driver.devices.size() ? std::max(driver.devices[index].free_memory, 0.0) : 0;
}

bool fits_on_device(double bytes, double room) {
    return room <= 0 || bytes * kDeviceReserve + kDeviceWorkspace <= room;
}

double device_room_after(double bytes, double room) {
    if (room <= 0) return std::numeric_limits<double>::infinity();
    return (room - kDeviceWorkspace) / kDeviceReserve - bytes;
}

void expect_device_memory(const std::string& what, double bytes, const std::string& advice, double room) {
    if (fits_on_device(bytes, room)) return;
    const auto size = [](double value) { return size_text(static_cast<std::uint64_t>(std::min(value, 9e18))); };
    const ChosenGpu gpu = chosen_gpu();
    throw Error(ErrorCode::memory, "--device",
                "expected " + size(bytes * kDeviceReserve + kDeviceWorkspace) + " on " + gpu_kind_name(gpu.kind) + ":" +
                    std::to_string(gpu.index) + " for " + what,
                "found " + size(room) + " free: " + (advice.empty() ? "" : advice + ", or ") + "take --device cpu");
}

}  // namespace headscope::model
