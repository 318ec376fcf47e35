// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// GPU libraries (kernels/gpu/plugin.h): found in the folder of this library, or named by HEADSCOPE_CUDA_KERNELS and
// HEADSCOPE_HIP_KERNELS; opened by dlopen() at first use.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/gpu/plugin.h"

namespace headscope::kernels::gpu {

/// Backends that can be forced: "cuda" and "hip" where their library and a device exist; "emulator" and "emulator64",
/// of warps of 32 and 64 threads, where HEADSCOPE_EMULATOR is 1.
std::vector<std::string> backend_names();

/// Why backend_names() lacks "cuda" or "hip"; empty if it has it.
std::string problem(const std::string& name);

/// Chooses one of backend_names(), and one of its devices; "" for the first of cuda and hip.
void choose(const std::string& name, int device);

/// "cuda:0 NVIDIA H100 80GB HBM3 sm_90", "hip:0 AMD Instinct MI210 gfx90a"; "cpu" for an emulator and without a choice.
std::string device_name();

/// Index of the chosen device; 0 without a choice. Threads: any.
int device_index();

/// The chosen backend, or "gpu" without one. Threads: any.
std::string chosen_name();

/// "mma" if attention of bfloat16 runs on tensor cores of the chosen device, else "fma"; "" without a choice.
std::string chosen_products();

/// Keeps the products of the running call, "mma" or "fma", for ran_name() until the next plugin(). Per thread.
void note_products(const char* products);

/// chosen_name(), and the products that the last call on this thread noted, if any: "cuda mma".
std::string ran_name();

/// The chosen library, configured for a call on this thread. Throws Error that names `where` if there is none.
const HsPlugin& plugin(const char* where);

/// The refusal of a library without an operator.
[[noreturn]] void refuse(const char* where);

/// Throws what an outcome means: nothing, Cancelled, Error that names `where`, or std::runtime_error of a full GPU.
void expect_done(const HsOutcome& outcome, const char* where);

/// Device memory of one call on the chosen device, for work on its default stream; returned with this object
/// (blocks.h).
class Memory {
public:
    Memory(const HsPlugin& library, const char* where) : library_(library), where_(where), device_(device_index()) {}
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// Uninitialized, at least one element.
    template <class T>
    T* take(std::int64_t count) {
        return static_cast<T*>(bytes(static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T)));
    }
    template <class T>
    T* zeros(std::int64_t count) {
        T* memory = take<T>(count);
        clear(memory, static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T));
        return memory;
    }
    template <class T>
    T* upload(const T* from, std::int64_t count) {
        T* memory = take<T>(count);
        if (count > 0) copy(memory, from, static_cast<std::size_t>(count) * sizeof(T), HS_TO_DEVICE);
        return memory;
    }
    template <class T>
    void fetch(const T* from, std::int64_t count, T* to) {
        if (count > 0) copy(to, from, static_cast<std::size_t>(count) * sizeof(T), HS_TO_HOST);
    }
    template <class T>
    std::vector<T> fetch(const T* from, std::int64_t count) {
        std::vector<T> values(static_cast<std::size_t>(count));
        fetch(from, count, values.data());
        return values;
    }

private:
    void* bytes(std::size_t count);
    void clear(void* memory, std::size_t count);
    /// Returns once the bytes are there.
    void copy(void* to, const void* from, std::size_t count, int direction);

    const HsPlugin& library_;
    const char* where_;
    int device_;
    struct Block {
        void* memory;
        std::size_t bytes;
    };
    std::vector<Block> blocks_;
};

}  // namespace headscope::kernels::gpu
