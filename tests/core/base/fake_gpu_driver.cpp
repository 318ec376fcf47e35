// SPDX-License-Identifier: GPL-3.0-or-later
// A driver library of no GPU, for HEADSCOPE_CUDA_DRIVER. HEADSCOPE_FAKE_GPUS is the number of devices, or "fails".
// The second device gives no context. HEADSCOPE_FAKE_INCOMPLETE leaves a function out. For HEADSCOPE_CUDA_KERNELS also
// a GPU library with code for the second device, sm_90, and not for the first, sm_80; without operators, or with
// HEADSCOPE_FAKE_KERNELS with operators that fail.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/gpu/plugin.h"

namespace {

constexpr int kUnknown = 999, kInvalidDevice = 101;
constexpr std::size_t kMemory = 16'000'000'000;

std::string wanted() {
    const char* text = std::getenv("HEADSCOPE_FAKE_GPUS");
    return text == nullptr ? "0" : text;
}

int current = -1;

void done(HsOutcome* outcome) {
    *outcome = {};
}

template <class Task>
void fails(const Task*, const HsCall*, HsOutcome* outcome) {
    *outcome = {};
    outcome->status = HS_DEVICE_FAILED;
    std::snprintf(outcome->text, sizeof outcome->text, "no device");
}

void add_operators(HsPlugin& library) {
    library.attention = &fails<HsAttention>;
    library.attention_backward = &fails<HsBackward>;
    library.recurrent_forward = &fails<HsRecurrentForward>;
    library.recurrent_backward = &fails<HsRecurrentBackward>;
    library.implicit = &fails<HsImplicit>;
    library.running_forward = &fails<HsRunningForward>;
    library.running_backward = &fails<HsRunningBackward>;
    library.taylor = &fails<HsTaylor>;
    library.rms_norm = library.rms_norm_backward = &fails<HsRmsNorm>;
    library.gated_silu = &fails<HsGatedSilu>;
    library.rotate = &fails<HsRotation>;
    library.cross_entropy = &fails<HsCrossEntropy>;
    library.convolution = library.convolution_backward = &fails<HsConvolution>;
    library.adamw = &fails<HsAdamW>;
    library.squared_norm = &fails<HsSquaredNorm>;
}

HsPlugin fake_library() {
    HsPlugin library{};
    library.abi = HS_GPU_ABI;
    library.name = "cuda";
    library.architectures = "sm_75+sm_90";
    library.devices = [] { return std::atoi(wanted().c_str()); };
    library.select = [](int, HsOutcome* outcome) { done(outcome); };
    library.allocate = [](std::size_t bytes, HsOutcome* outcome) {
        done(outcome);
        return std::malloc(bytes);
    };
    library.release = [](void* memory) { std::free(memory); };
    library.clear = [](void*, std::size_t, void*, HsOutcome* outcome) { done(outcome); };
    library.copy = [](void*, const void*, std::size_t, int, void*, HsOutcome* outcome) { done(outcome); };
    library.wait = [](void*, HsOutcome* outcome) { done(outcome); };
    library.mma = [](int) { return 0; };
    if (std::getenv("HEADSCOPE_FAKE_KERNELS") != nullptr) add_operators(library);
    return library;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
    return wanted() == "fails" ? kUnknown : 0;
}

int cuGetErrorName(int error, const char** name) {
    *name = error == kUnknown ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_INVALID_DEVICE";
    return 0;
}

int cuDriverGetVersion(int* version) {
    *version = 13'020;
    return 0;
}

#if !defined(HEADSCOPE_FAKE_INCOMPLETE)
int cuDeviceGetCount(int* count) {
    *count = std::atoi(wanted().c_str());
    return 0;
}
#endif

int cuDeviceGet(int* device, int index) {
    *device = index;
    return index >= 0 && index < std::atoi(wanted().c_str()) ? 0 : kInvalidDevice;
}

int cuDeviceGetName(char* name, int size, int device) {
    std::snprintf(name, static_cast<std::size_t>(size), "Fake\nGPU %d", device);
    return 0;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
    *bytes = kMemory * static_cast<std::size_t>(device + 1);
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    *value = attribute == 75 ? 8 + device : 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = &current;
    return device == 0 ? 0 : kInvalidDevice;
}

int cuDevicePrimaryCtxRelease_v2(int) {
    return 0;
}

int cuCtxPushCurrent_v2(void* context) {
    current = context == &current ? 0 : -1;
    return current;
}

int cuCtxPopCurrent_v2(void** context) {
    *context = &current;
    current = -1;
    return 0;
}

int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
    *total = kMemory;
    *free_bytes = current == 0 ? kMemory / 4 : 0;
    return current == 0 ? 0 : kInvalidDevice;
}

const HsPlugin* headscope_gpu_plugin(std::uint32_t abi) {
    static const HsPlugin library = fake_library();
    return abi == HS_GPU_ABI ? &library : nullptr;
}

}  // extern "C"
