// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace headscope::kernels {

/// A refusal of a kernel: wrong shapes, types or options. what() is "[where] expected; found".
class Error : public std::invalid_argument {
public:
    Error(std::string where, std::string expected, std::string found);
    const std::string& where() const noexcept { return where_; }
    const std::string& expected() const noexcept { return expected_; }
    const std::string& found() const noexcept { return found_; }

private:
    std::string where_, expected_, found_;
};

/// A call ended early because its cancel flag was set. Its outputs are undefined.
class Cancelled : public std::runtime_error {
public:
    Cancelled() : std::runtime_error("cancelled") {}
};

/// Throws Cancelled when the flag is set. A null flag never cancels. Threads: any.
inline void check_cancelled(const std::atomic<bool>* cancel) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) throw Cancelled();
}

/// Names that can be forced on this machine, best first, never empty: the SIMD targets of the cpu backend that this
/// processor runs ("AVX3_ZEN4", "AVX3", "AVX2", "SSE4", "EMU128", ...); "cuda" and "hip" where their library and a
/// device exist; "emulator" and "emulator64" (warps of 64) where HEADSCOPE_EMULATOR is 1; "reference".
std::vector<std::string> available_backends();

/// Forces a backend by name; "auto" or "" takes the best. Unknown or absent ones throw Error and name what there is.
/// The environment's HEADSCOPE_KERNELS is read once, at first use. Not to be called while an operator runs.
void force_backend(const std::string& name);

/// Forces "cuda" or "hip" on one of several devices. As force_backend().
void force_gpu(const std::string& name, int device);

/// Why "cuda" or "hip" is not among available_backends(), as errors say it after "found"; empty if it is. Threads: any.
std::string gpu_problem(const std::string& name);

/// The backend that operators take for memory of the processor, for files' settings: "AVX3", "cuda", "reference".
/// Threads: any.
std::string chosen_backend();

/// The same for operands of a type, "float32" or "bfloat16": "cuda mma" if attention of bfloat16 runs on tensor cores,
/// "cuda fma" if not. Threads: any.
std::string chosen_kernels(const std::string& dtype);

/// The device that it runs on: "cpu", or "cuda:0 NVIDIA H100 80GB HBM3 sm_90". Threads: any.
std::string chosen_device();

/// True if it runs on a GPU's kernels, on copies of the operands. Threads: any.
bool runs_on_gpu();

/// The GPU that operands in GPU memory must lie on. Threads: any.
int chosen_gpu_index();

/// The backend that ran the last operator on this thread (proof for tests and for the files' settings); after attention
/// of bfloat16 on a GPU with its products, as chosen_kernels().
std::string last_backend();

}  // namespace headscope::kernels
