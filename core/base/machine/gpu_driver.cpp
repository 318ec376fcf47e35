// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/machine/gpu_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace headscope {
namespace {

/// Both drivers return 0 for success, and have calls of one form.
using Status = int;
using InitCall = Status(unsigned);
using NumberCall = Status(int*);
using DeviceCall = Status(int*, int);
using NameCall = Status(char*, int, int);
using MemoryCall = Status(std::size_t*, int);
using RoomCall = Status(std::size_t*, std::size_t*);

constexpr int kMostGpus = 1024;  ///< a larger count is a fault of the library

struct DriverCalls {
    const char *vendor, *kind, *variable;
    std::array<const char*, 4> libraries;
    const char *init, *version, *count, *device, *name, *memory, *room;
};

constexpr DriverCalls kCuda{"NVIDIA",
                            "cuda",
                            "HEADSCOPE_CUDA_DRIVER",
                            {"libcuda.so.1", nullptr, nullptr, nullptr},
                            "cuInit",
                            "cuDriverGetVersion",
                            "cuDeviceGetCount",
                            "cuDeviceGet",
                            "cuDeviceGetName",
                            "cuDeviceTotalMem_v2",
                            "cuMemGetInfo_v2"};
constexpr DriverCalls kHip{"AMD",
                           "hip",
                           "HEADSCOPE_HIP_DRIVER",
                           {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
                           "hipInit",
                           "hipDriverGetVersion",
                           "hipGetDeviceCount",
                           "hipDeviceGet",
                           "hipDeviceGetName",
                           "hipDeviceTotalMem",
                           "hipMemGetInfo"};

const DriverCalls& calls_of(GpuKind kind) {
    return kind == GpuKind::cuda ? kCuda : kHip;
}

/// Ends the search; the text becomes GpuDriver::problem.
struct NoGpus {
    std::string why;
};

std::string printable(std::string_view text) {
    std::string shown(text);
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return shown;
}

/// The first "gfx90a" among the bytes of a device's properties; empty: none.
std::string find_gfx(std::string_view properties) {
    constexpr std::string_view prefix = "gfx", digits = "0123456789abcdef";
    constexpr std::size_t shortest = 6;  // gfx906
    for (auto at = properties.find(prefix); at != std::string_view::npos; at = properties.find(prefix, at + 1)) {
        const auto end = std::min(properties.find_first_not_of(digits, at + prefix.size()), properties.size());
        if (end - at >= shortest) return std::string(properties.substr(at, end - at));
    }
    return {};
}

class OpenDriver {
public:
    OpenDriver(GpuKind kind, GpuDriver& found) : kind_(kind), calls_(calls_of(kind)), found_(found) {}

    void search(bool free_memory) {
        open();
        check(calls_.init, call<InitCall>(calls_.init)(0));
        int version = 0, count = 0;
        check(calls_.version, call<NumberCall>(calls_.version)(&version));
        found_.version = kind_ == GpuKind::cuda
                             ? std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10)
                             : std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100);
        check(calls_.count, call<NumberCall>(calls_.count)(&count));
        if (count < 0 || count > kMostGpus)
            throw NoGpus{driver() + ", which reports " + std::to_string(count) + " devices"};
        if (count == 0) throw NoGpus{driver() + " (version " + found_.version + "), which reports no device"};
        for (int i = 0; i < count; ++i) found_.devices.push_back(describe(i, free_memory));
    }

private:
    void open() {
        const char* given = std::getenv(calls_.variable);
        const bool named = given != nullptr && *given != '\0';
        found_.library = named ? given : calls_.libraries[0];
        handle_ = dlopen(found_.library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) return;
        const char* message = dlerror();
        std::string why = printable(message == nullptr ? "" : message);
        for (std::size_t i = 1; !named && i < calls_.libraries.size() && calls_.libraries[i] != nullptr; ++i) {
            handle_ = dlopen(calls_.libraries[i], RTLD_NOW | RTLD_LOCAL);
            if (handle_ == nullptr) continue;
            found_.library = calls_.libraries[i];
            return;
        }
        const std::string shown = printable(found_.library.c_str());
        if (why.starts_with(shown + ": ")) why.erase(0, shown.size() + 2);
        throw NoGpus{"no driver library " + shown + (why.empty() ? "" : ": " + why)};
    }

    std::string driver() const { return "driver library " + printable(found_.library.c_str()); }

    template <class Function>
    Function* optional_call(const char* name) const {
        return reinterpret_cast<Function*>(dlsym(handle_, name));
    }

    template <class Function>
    Function* call(const char* name) const {
        if (auto* function = optional_call<Function>(name)) return function;
        throw NoGpus{driver() + " without the function " + name};
    }

    void check(const char* name, Status status) const {
        if (status == 0) return;
        throw NoGpus{driver() + ", whose " + name + " returns error " + std::to_string(status) + error_name(status)};
    }

    /// " (CUDA_ERROR_NO_DEVICE)"; empty where the library has no name.
    std::string error_name(Status status) const {
        const char* name = nullptr;
        if (kind_ == GpuKind::cuda) {
            const auto get = optional_call<Status(Status, const char**)>("cuGetErrorName");
            if (get == nullptr || get(status, &name) != 0) name = nullptr;
        } else if (const auto get = optional_call<const char*(Status)>("hipGetErrorName")) {
            name = get(status);
        }
        return name == nullptr ? "" : " (" + printable(name) + ")";
    }

    GpuDevice describe(int index, bool free_memory) const {
        GpuDevice device;
        device.kind = kind_;
        int handle = 0;
        check(calls_.device, call<DeviceCall>(calls_.device)(&handle, index));
        std::array<char, 256> name{};
        check(calls_.name, call<NameCall>(calls_.name)(name.data(), static_cast<int>(name.size()) - 1, handle));
        device.name = printable({name.data(), ::strnlen(name.data(), name.size())});
        std::size_t bytes = 0;
        check(calls_.memory, call<MemoryCall>(calls_.memory)(&bytes, handle));
        device.memory = static_cast<double>(bytes);
        read_capability(handle, device);
        if (free_memory) device.free_memory = room_on(handle);
        return device;
    }

    void read_capability(int handle, GpuDevice& device) const {
        if (kind_ == GpuKind::hip) {
            constexpr const char* name = "hipDeviceComputeCapability";
            check(name, call<Status(int*, int*, int)>(name)(&device.major, &device.minor, handle));
            device.gfx = gfx_of(handle);
            return;
        }
        constexpr const char* name = "cuDeviceGetAttribute";
        constexpr int major = 75, minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
        const auto get = call<Status(int*, int, int)>(name);
        check(name, get(&device.major, major, handle));
        check(name, get(&device.minor, minor, handle));
    }

    /// hipDeviceProp_t is about 1.5 KB; the offset of its gcnArchName differs between versions of HIP.
    std::string gfx_of(int handle) const {
        constexpr std::size_t room = 1 << 14;
        alignas(std::max_align_t) std::array<char, room> properties{};
        for (const char* name : {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"}) {
            const auto read = optional_call<Status(void*, int)>(name);
            if (read != nullptr && read(properties.data(), handle) == 0)
                return find_gfx({properties.data(), properties.size()});
        }
        return {};
    }

    /// -1 where the device gives no context: another process may hold it alone.
    double room_on(int handle) const {
        const auto room = optional_call<RoomCall>(calls_.room);
        if (room == nullptr) return -1;
        std::size_t free_bytes = 0, total = 0;
        if (kind_ == GpuKind::hip) {
            const auto get = optional_call<NumberCall>("hipGetDevice");
            const auto set = optional_call<Status(int)>("hipSetDevice");
            int before = 0;
            if (get == nullptr || set == nullptr || get(&before) != 0) return -1;
            const bool read = set(handle) == 0 && room(&free_bytes, &total) == 0;
            (void)set(before);  // the calling thread's
            return read ? static_cast<double>(free_bytes) : -1;
        }
        const auto retain = optional_call<Status(void**, int)>("cuDevicePrimaryCtxRetain");
        const auto release = optional_call<Status(int)>("cuDevicePrimaryCtxRelease_v2");
        const auto push = optional_call<Status(void*)>("cuCtxPushCurrent_v2");
        const auto pop = optional_call<Status(void**)>("cuCtxPopCurrent_v2");
        void* context = nullptr;
        if (retain == nullptr || release == nullptr || push == nullptr || pop == nullptr ||
            retain(&context, handle) != 0)
            return -1;
        bool read = false;
        if (push(context) == 0) {
            read = room(&free_bytes, &total) == 0;
            (void)pop(&context);
        }
        (void)release(handle);
        return read ? static_cast<double>(free_bytes) : -1;
    }

    GpuKind kind_;
    const DriverCalls& calls_;
    GpuDriver& found_;
    void* handle_ = nullptr;
};

}  // namespace

const char* gpu_kind_name(GpuKind kind) {
    return calls_of(kind).kind;
}

const char* gpu_vendor_name(GpuKind kind) {
    return calls_of(kind).vendor;
}

std::string GpuDevice::architecture() const {
    if (!gfx.empty()) return gfx;
    return (kind == GpuKind::hip ? "gfx" : "sm_") + std::to_string(major) + std::to_string(minor);
}

GpuDriver find_gpus(GpuKind kind, bool free_memory) {
    GpuDriver found;
    try {
        OpenDriver(kind, found).search(free_memory);
    } catch (const NoGpus& none) {
        found.devices.clear();
        found.problem = none.why;
    }
    return found;
}

}  // namespace headscope
