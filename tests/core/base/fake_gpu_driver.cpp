// SPDX-License-Identifier: GPL-3.0-or-later
// A driver library of no GPU, for HEADSCOPE_CUDA_DRIVER. HEADSCOPE_FAKE_GPUS is the number of devices, or "fails".
// The second device gives no context. HEADSCOPE_FAKE_INCOMPLETE leaves a function out.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kUnknown = 999, kInvalidDevice = 101;
constexpr std::size_t kMemory = 16'000'000'000;

std::string wanted() {
    const char* text = std::getenv("HEADSCOPE_FAKE_GPUS");
    return text == nullptr ? "0" : text;
}

int current = -1;

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

}  // extern "C"
