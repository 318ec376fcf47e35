// SPDX-License-Identifier: GPL-3.0-or-later
// A driver library of two AMD GPUs that do not exist, for HEADSCOPE_HIP_DRIVER. The second has no properties.
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kInvalidDevice = 101;
constexpr std::size_t kNameAt = 1160;  ///< of gcnArchName: any offset is found

int current = 0;

}  // namespace

extern "C" {

int hipInit(unsigned) {
    return 0;
}

int hipDriverGetVersion(int* version) {
    *version = 60'342'131;
    return 0;
}

int hipGetDeviceCount(int* count) {
    *count = 2;
    return 0;
}

int hipDeviceGet(int* device, int index) {
    *device = index;
    return index == 0 || index == 1 ? 0 : kInvalidDevice;
}

int hipDeviceGetName(char* name, int size, int device) {
    std::snprintf(name, static_cast<std::size_t>(size), "Fake gfx card %d", device);
    return 0;
}

int hipDeviceTotalMem(std::size_t* bytes, int) {
    *bytes = 64'000'000'000;
    return 0;
}

int hipDeviceComputeCapability(int* major, int* minor, int) {
    *major = 9;
    *minor = 0;
    return 0;
}

int hipGetDevicePropertiesR0600(void* properties, int device) {
    if (device != 0) return kInvalidDevice;
    char* bytes = static_cast<char*>(properties);
    std::strcpy(bytes, "Fake gfx card 0");
    std::strcpy(bytes + kNameAt, "gfx90a:sramecc+:xnack-");
    return 0;
}

int hipGetDevice(int* device) {
    *device = current;
    return 0;
}

int hipSetDevice(int device) {
    current = device;
    return 0;
}

int hipMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
    *free_bytes = current == 0 ? 1'000'000'000 : 2'000'000'000;
    *total = 64'000'000'000;
    return 0;
}

}  // extern "C"
