// SPDX-License-Identifier: GPL-3.0-or-later
// Faults planted in a kernel of the test are found and named, whatever the order of threads.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/gpu/device/platform.h"

using namespace headscope::gpu;

namespace {

enum class Fault : std::uint8_t { none, no_barrier, not_written, beyond, lost_thread, unaligned };

/// Reverses the threads' numbers through shared memory.
struct Reverse {
    static constexpr int kThreads = 128;
    struct Args {
        Fault fault;
        std::vector<int>* out;
    };
    static void run(const Args& args, const Context& c) {
        const auto memory = c.shared<int>(0);
        const int t = c.thread();
        if (args.fault == Fault::lost_thread && t == 7) return;
        if (args.fault != Fault::not_written || t != 3) memory[t] = t;
        if (args.fault != Fault::no_barrier) c.sync();
        const int from = args.fault == Fault::beyond && t == 0 ? kThreads : kThreads - 1 - t;
        const int value = memory[from];
        if (args.fault == Fault::unaligned) load4(c.shared<float>(0), 1);
        (*args.out)[static_cast<std::size_t>(c.block() * kThreads + t)] = value + c.shuffle_xor(0, 1);
    }
};

/// The error, or "" and the result in `out`.
std::string run_with(Fault fault, std::vector<int>& out, const char* seed = "1") {
    setenv("HEADSCOPE_EMULATOR_SEED", seed, 1);
    out.assign(3 * Reverse::kThreads, -1);
    const char* error = launch<Reverse>(3, 4 * Reverse::kThreads, {fault, &out}, nullptr);
    unsetenv("HEADSCOPE_EMULATOR_SEED");
    return error == nullptr ? "" : error;
}

}  // namespace

TEST_CASE("a kernel without faults runs, with warps of 32 and of 64", "[emulator]") {
    for (const int warp : {32, 64}) {
        emulated_warp() = warp;
        std::vector<int> out;
        REQUIRE(run_with(Fault::none, out).empty());
        for (std::size_t n = 0; n < out.size(); ++n) REQUIRE(out[n] == 127 - static_cast<int>(n % 128));
    }
    emulated_warp() = 32;
}

TEST_CASE("planted faults of a kernel are found for every order of threads", "[emulator]") {
    std::vector<int> out;
    for (const char* seed : {"1", "2", "3"}) {
        CHECK_THAT(run_with(Fault::no_barrier, out, seed),
                   Catch::Contains("without a barrier between") || Catch::Contains("no thread wrote"));
        CHECK_THAT(run_with(Fault::not_written, out, seed),
                   Catch::Contains("reads shared memory that no thread wrote"));
        CHECK_THAT(run_with(Fault::beyond, out, seed), Catch::Contains("reads beyond shared memory"));
        CHECK_THAT(run_with(Fault::lost_thread, out, seed), Catch::Contains("a thread ended while others wait"));
        CHECK_THAT(run_with(Fault::unaligned, out, seed), Catch::Contains("unaligned access of 16 bytes"));
    }
}

TEST_CASE("a launch beyond the limits of devices is refused", "[emulator]") {
    std::vector<int> out(Reverse::kThreads);
    CHECK_THAT(launch<Reverse>(1, 100 << 10, {Fault::none, &out}, nullptr), Catch::Contains("64 KB of shared memory"));
}
