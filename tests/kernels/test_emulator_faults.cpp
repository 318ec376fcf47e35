// SPDX-License-Identifier: GPL-3.0-or-later
// Faults planted in a kernel of the test are found and named, whatever the order of threads.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/gpu/device/platform.h"

using namespace headscope::gpu;

namespace {

enum class Fault : std::uint8_t {
    none,
    no_barrier,
    not_written,
    beyond,
    lost_thread,
    unaligned,
    written_twice,
    written_after_read,
    written_beyond,
    added_to_unwritten,
    added_after_write,
    added_after_read,
    read_after_added,
    added_beyond,
    lane_ended,
    lane_at_barrier,
    lane_alone,
    other_exchange,
    other_mask,
    other_barrier,
};

constexpr int kOdd = 7;  ///< the thread that errs

/// Reverses the threads' numbers through shared memory, and counts threads in the word behind them.
struct Reverse {
    static constexpr int kThreads = 128, kWords = kThreads + 4;
    struct Args {
        Fault fault;
        std::vector<int>* out;
    };
    static void run(const Args& args, const Context& c) {
        const auto memory = c.shared<int>(0);
        const auto counter = c.shared<unsigned>(4 * kThreads);
        const int t = c.thread();
        const auto errs = [&](Fault fault) { return args.fault == fault && t == kOdd; };
        if (errs(Fault::lost_thread)) return;
        if (!errs(Fault::not_written)) memory[t] = t;
        if (errs(Fault::written_twice)) memory[t + 1] = t;
        if (errs(Fault::written_beyond)) memory[kWords] = t;
        if (t == 0 && args.fault != Fault::added_to_unwritten) counter[0] = 0U;
        if (args.fault == Fault::added_after_write) {
            if (t == 0) c.add(counter, 0, 1U);
            (void)c.shuffle_xor(0, 1);
            if (t == kOdd) c.add(counter, 0, 1U);
        }
        if (errs(Fault::lane_alone)) (void)c.shuffle_xor(0, 1);
        if (errs(Fault::other_barrier))
            c.sync();
        else if (args.fault != Fault::no_barrier)
            c.sync();
        const int value = memory[errs(Fault::beyond) ? kWords : kThreads - 1 - t];
        c.add(counter, errs(Fault::added_beyond) ? 4 : 0, 1U);
        if (errs(Fault::read_after_added)) (void)static_cast<unsigned>(counter[0]);
        if (errs(Fault::unaligned)) load4(c.shared<float>(0), 1);
        if (errs(Fault::lane_ended)) return;
        if (errs(Fault::lane_at_barrier)) c.sync();
        int sum = value;
        if (errs(Fault::other_exchange))
            sum += c.shuffle_xor(0, 1);
        else
            sum += c.shuffle_xor(0, errs(Fault::other_mask) ? 2 : 1);
        if (args.fault == Fault::written_after_read || args.fault == Fault::added_after_read) {
            // The exchange makes the warp's reads come first, but orders no memory.
            if (t < 32) (void)static_cast<int>(memory[kThreads - 1]);
            (void)c.shuffle_xor(0, 1);
            if (errs(Fault::written_after_read)) memory[kThreads - 1] = 0;
            if (errs(Fault::added_after_read)) c.add(c.shared<unsigned>(0), kThreads - 1, 1U);
        }
        c.sync();
        (*args.out)[static_cast<std::size_t>(c.block() * kThreads + t)] = sum + static_cast<int>(counter[0]) - kThreads;
    }
};

/// The error, or "" and the result in `out`.
std::string run_with(Fault fault, std::vector<int>& out, const char* seed = "1") {
    setenv("HEADSCOPE_EMULATOR_SEED", seed, 1);
    out.assign(3 * Reverse::kThreads, -1);
    const char* error = launch<Reverse>(3, 4 * Reverse::kWords, {fault, &out}, nullptr);
    unsetenv("HEADSCOPE_EMULATOR_SEED");
    return error == nullptr ? "" : error;
}

enum class CopyFault : std::uint8_t {
    none,
    no_wait,
    no_wait_at_end,
    barrier_before_wait,
    no_barrier,
    read_after_wait,
    copied_twice,
    written_meanwhile,
    added_meanwhile,
    copied_after_read,
    copied_beyond,
};

/// Reverses groups of four numbers that copies bring, the last one as zeros.
struct CopiedReverse {
    static constexpr int kThreads = 64, kWords = 4 * kThreads;
    struct Args {
        CopyFault fault;
        const int* numbers;  ///< [kThreads, 4]
        std::vector<int>* out;
    };
    static void run(const Args& args, const Context& c) {
        const auto memory = c.shared<int>(0);
        const int t = c.thread(), other = kThreads - 1 - t;
        const auto errs = [&](CopyFault fault) { return args.fault == fault && t == kOdd; };
        if (args.fault == CopyFault::copied_after_read) {
            for (int n = 4 * t; n < 4 * t + 4; ++n) memory[n] = 0;
            c.sync();
            if (t < 32) (void)static_cast<int>(memory[4 * kOdd]);
            (void)c.shuffle_xor(0, 1);
        }
        c.copy16(memory, errs(CopyFault::copied_beyond) ? kWords : 4 * t, args.numbers + 4 * t, t + 1 < kThreads);
        if (errs(CopyFault::copied_twice)) c.copy16(memory, 4 * t, args.numbers + 4 * t, true);
        if (errs(CopyFault::written_meanwhile)) memory[4 * t + 3] = 0;
        if (errs(CopyFault::added_meanwhile)) c.add(c.shared<unsigned>(0), 4 * t, 1U);
        if (args.fault == CopyFault::barrier_before_wait) c.sync();
        if (!errs(CopyFault::no_wait)) c.wait_copies();
        if (args.fault == CopyFault::read_after_wait) {
            (void)c.shuffle_xor(0, 1);
            if (t == kOdd) (void)static_cast<int>(memory[4 * t - 4]);
        }
        if (args.fault != CopyFault::no_barrier && args.fault != CopyFault::barrier_before_wait) c.sync();
        for (int n = 0; n < 4; ++n)
            (*args.out)[static_cast<std::size_t>((c.block() * kThreads + t) * 4 + n)] = memory[4 * other + n];
        c.sync();
        if (errs(CopyFault::no_wait_at_end)) c.copy16(memory, 4 * t, args.numbers, true);
    }
};

std::string run_copies(CopyFault fault, const std::vector<int>& numbers, std::vector<int>& out,
                       const char* seed = "1") {
    setenv("HEADSCOPE_EMULATOR_SEED", seed, 1);
    out.assign(static_cast<std::size_t>(2 * CopiedReverse::kWords), -1);
    const char* error = launch<CopiedReverse>(2, 4 * CopiedReverse::kWords, {fault, numbers.data(), &out}, nullptr);
    unsetenv("HEADSCOPE_EMULATOR_SEED");
    return error == nullptr ? "" : error;
}

/// 1, 2, 3, ... [kThreads, 4]
std::vector<int> numbers_to_copy() {
    std::vector<int> numbers;
    for (int n = 0; n < CopiedReverse::kWords; ++n) numbers.push_back(n + 1);
    return numbers;
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

TEST_CASE("copies into shared memory bring their numbers, or zeros", "[emulator]") {
    const std::vector<int> numbers = numbers_to_copy();
    std::vector<int> out;
    REQUIRE(run_copies(CopyFault::none, numbers, out).empty());
    for (std::size_t n = 0; n < out.size(); ++n) {
        const std::size_t group = n / 4 % CopiedReverse::kThreads, from = CopiedReverse::kThreads - 1 - group;
        REQUIRE(out[n] == (group == 0 ? 0 : numbers[from * 4 + n % 4]));
    }
}

TEST_CASE("planted faults of a kernel are found for every order of threads", "[emulator]") {
    struct Planted {
        Fault fault;
        const char* text;
    };
    const Planted faults[] = {
        {Fault::not_written, "reads shared memory that no thread wrote"},
        {Fault::beyond, "thread 7 reads beyond shared memory (word 132"},
        {Fault::lost_thread, "thread 7 ended while others wait at a barrier (test_emulator_faults.cpp:"},
        {Fault::unaligned, "unaligned access of 16 bytes"},
        {Fault::written_twice, "writes what another thread writes without a barrier between (word 8, barrier 0)"},
        {Fault::written_after_read,
         "thread 7 writes what another thread reads without a barrier between (word 127, barrier 1)"},
        {Fault::written_beyond, "thread 7 writes beyond shared memory (word 132"},
        {Fault::added_to_unwritten, "adds to shared memory that no thread wrote (word 128"},
        {Fault::added_after_write,
         "thread 7 adds to what another thread accesses without a barrier between (word 128, barrier 0)"},
        {Fault::added_after_read,
         "thread 7 adds to what another thread accesses without a barrier between (word 127, barrier 1)"},
        {Fault::read_after_added,
         "thread 7 reads what another thread writes without a barrier between (word 128, barrier 1)"},
        {Fault::added_beyond, "thread 7 adds beyond shared memory (word 132"},
        {Fault::lane_ended, "for thread 7, which ended"},
        {Fault::lane_at_barrier, "for thread 7, which waits at a barrier"},
        {Fault::lane_alone, "thread 7 waits in an exchange (test_emulator_faults.cpp:"},
        {Fault::other_exchange, "threads 0 and 7 of one warp run different instructions"},
        {Fault::other_mask, "threads 0 and 7 of one warp exchange by different masks (1 and 2,"},
        {Fault::other_barrier, "threads 0 and 7 wait at different barriers"},
    };
    std::vector<int> out;
    for (const char* seed : {"1", "2", "3"}) {
        for (const Planted& planted : faults) {
            INFO("fault " << static_cast<int>(planted.fault) << ", seed " << seed);
            CHECK_THAT(run_with(planted.fault, out, seed), Catch::Contains(planted.text));
        }
        CHECK_THAT(run_with(Fault::no_barrier, out, seed),
                   Catch::Contains("without a barrier between") || Catch::Contains("no thread wrote"));
    }
}

TEST_CASE("planted faults around copies are found for every order of threads", "[emulator]") {
    struct Planted {
        CopyFault fault;
        const char* text;
    };
    const Planted faults[] = {
        {CopyFault::no_wait, "reads what a copy is still writing, before its wait_copies() (word 28, barrier 1)"},
        {CopyFault::read_after_wait,
         "thread 7 reads what another thread writes without a barrier between (word 24, barrier 0)"},
        {CopyFault::no_wait_at_end, "thread 7 ends while its copies are still writing, without a wait_copies()"},
        {CopyFault::copied_twice, "thread 7 writes what a copy is still writing, before its wait_copies() (word 28,"},
        {CopyFault::written_meanwhile,
         "thread 7 writes what a copy is still writing, before its wait_copies() (word 31,"},
        {CopyFault::added_meanwhile,
         "thread 7 adds to what a copy is still writing, before its wait_copies() (word 28,"},
        {CopyFault::copied_after_read,
         "thread 7 writes what another thread reads without a barrier between (word 28, barrier 1)"},
        {CopyFault::copied_beyond, "thread 7 writes beyond shared memory (word 256,"},
    };
    const std::vector<int> numbers = numbers_to_copy();
    std::vector<int> out;
    for (const char* seed : {"1", "2", "3"}) {
        for (const Planted& planted : faults) {
            INFO("fault " << static_cast<int>(planted.fault) << ", seed " << seed);
            CHECK_THAT(run_copies(planted.fault, numbers, out, seed), Catch::Contains(planted.text));
        }
        CHECK_THAT(run_copies(CopyFault::no_barrier, numbers, out, seed),
                   Catch::Contains("reads what another thread writes without a barrier between") ||
                       Catch::Contains("no thread wrote"));
        CHECK_THAT(run_copies(CopyFault::barrier_before_wait, numbers, out, seed),
                   Catch::Contains("reads what another thread writes without a barrier between") ||
                       Catch::Contains("reads what a copy is still writing"));
    }
}

TEST_CASE("a launch beyond the limits of devices is refused", "[emulator]") {
    std::vector<int> out(Reverse::kThreads);
    CHECK_THAT(launch<Reverse>(1, 100 << 10, {Fault::none, &out}, nullptr), Catch::Contains("64 KB of shared memory"));
}
