// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's table: memory of the platform, and the operators.
// HEADSCOPE_GPU_ARCHITECTURES: what the compiler has code for, as HsPlugin::architectures without quotes.
#include <cstdlib>
#include <cstring>

#include "kernels/gpu/device/entries.h"

#if !defined(HEADSCOPE_GPU_ARCHITECTURES)
#define HEADSCOPE_GPU_ARCHITECTURES
#endif
#define HS_QUOTED(...) #__VA_ARGS__
#define HS_TEXT(...) HS_QUOTED(__VA_ARGS__)

namespace headscope::gpu {
namespace {

#if defined(HEADSCOPE_EMULATOR)

constexpr const char* kName = "emulator";
constexpr std::int32_t kReusesMemory = 0;

int devices() {
    return 1;
}

void select(int, HsOutcome* outcome) {
    set_outcome(*outcome, HS_DONE, "");
}

/// Poisoned, so that results that no kernel writes show. No byte more, so that AddressSanitizer finds accesses beyond.
void* allocate(std::size_t bytes, HsOutcome* outcome) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, bytes == 0 ? 1 : bytes) != 0) memory = nullptr;
    set_outcome(*outcome, memory == nullptr ? HS_MEMORY : HS_DONE, memory == nullptr ? "out of memory" : "");
    if (memory != nullptr) std::memset(memory, 0xFF, bytes);
    return memory;
}

void release(void* memory) {
    std::free(memory);
}

void clear(void* memory, std::size_t bytes, void*, HsOutcome* outcome) {
    std::memset(memory, 0, bytes);
    set_outcome(*outcome, HS_DONE, "");
}

void copy(void* to, const void* from, std::size_t bytes, int, void*, HsOutcome* outcome) {
    std::memcpy(to, from, bytes);
    set_outcome(*outcome, HS_DONE, "");
}

void wait(void*, HsOutcome* outcome) {
    set_outcome(*outcome, HS_DONE, "");
}

void configure(int warp) {
    emulated_warp() = warp;
}
constexpr auto kConfigure = &configure;

#else

#if defined(__HIPCC__)
constexpr const char* kName = "hip";
#else
constexpr const char* kName = "cuda";
#endif
constexpr std::int32_t kReusesMemory = 1;
using Error = HS_GPU(Error_t);

void report(Error error, HsOutcome* outcome) {
    const int status = error == HS_GPU(Success)                 ? HS_DONE
                       : error == HS_GPU(ErrorMemoryAllocation) ? HS_MEMORY
                                                                : HS_DEVICE_FAILED;
    set_outcome(*outcome, status, status == HS_DONE ? "" : HS_GPU(GetErrorString)(error));
    if (status != HS_DONE) (void)HS_GPU(GetLastError)();  // resets it, or the next launch would report it
}

int devices() {
    int number = 0;
    return HS_GPU(GetDeviceCount)(&number) == HS_GPU(Success) ? number : 0;
}

void select(int device, HsOutcome* outcome) {
    report(HS_GPU(SetDevice)(device), outcome);
}

void* allocate(std::size_t bytes, HsOutcome* outcome) {
    void* memory = nullptr;
    report(HS_GPU(Malloc)(&memory, bytes == 0 ? 1 : bytes), outcome);
    return outcome->status == HS_DONE ? memory : nullptr;
}

void release(void* memory) {
    (void)HS_GPU(Free)(memory);
}

void clear(void* memory, std::size_t bytes, void* stream, HsOutcome* outcome) {
    report(HS_GPU(MemsetAsync)(memory, 0, bytes, static_cast<HS_GPU(Stream_t)>(stream)), outcome);
}

void copy(void* to, const void* from, std::size_t bytes, int direction, void* stream, HsOutcome* outcome) {
    const auto kind = direction == HS_TO_DEVICE ? HS_GPU(MemcpyHostToDevice)
                      : direction == HS_TO_HOST ? HS_GPU(MemcpyDeviceToHost)
                                                : HS_GPU(MemcpyDeviceToDevice);
    report(HS_GPU(MemcpyAsync)(to, from, bytes, kind, static_cast<HS_GPU(Stream_t)>(stream)), outcome);
}

void wait(void* stream, HsOutcome* outcome) {
    report(HS_GPU(StreamSynchronize)(static_cast<HS_GPU(Stream_t)>(stream)), outcome);
}

constexpr void (*kConfigure)(int) = nullptr;

#endif

constexpr HsPlugin kPlugin{HS_GPU_ABI,
                           kName,
                           HS_TEXT(HEADSCOPE_GPU_ARCHITECTURES),
                           kReusesMemory,
                           &devices,
                           &select,
                           &allocate,
                           &release,
                           &clear,
                           &copy,
                           &wait,
                           kConfigure,
                           &attention_mma,
                           &attention_entry,
                           &attention_backward_entry,
                           &recurrent_forward_entry,
                           &recurrent_backward_entry,
                           &implicit_entry,
                           &running_forward_entry,
                           &running_backward_entry,
                           &taylor_entry,
                           &rms_norm_entry,
                           &rms_norm_backward_entry,
                           &gated_silu_entry,
                           &rotate_entry,
                           &cross_entropy_entry,
                           &convolution_entry,
                           &convolution_backward_entry,
                           &adamw_entry,
                           &squared_norm_entry};

}  // namespace
}  // namespace headscope::gpu

extern "C" __attribute__((visibility("default"))) const HsPlugin* headscope_gpu_plugin(std::uint32_t abi) {
    return abi == HS_GPU_ABI ? &headscope::gpu::kPlugin : nullptr;
}
