// SPDX-License-Identifier: GPL-3.0-or-later
// The backend that is forced is the one that runs, and nonsense is refused by name. Memory of a GPU between calls, on a
// library of no GPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/gpu/host/blocks.h"
#include "kernels/gpu/host/plugin.h"
#include "kernels/gpu/libraries.h"
#include "kernels/gpu/operators.h"
#include "tests/kernels/attention_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::run;

namespace {

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20;

/// Blocks of a library of no GPU: addresses of one byte each.
struct FakeDevice {
    std::size_t room = std::size_t{1} << 30U, used = 0;
    int allocations = 0, current = -1;
    std::map<void*, std::size_t> blocks;
    std::vector<int> released_on;  ///< the current device of each release
};

FakeDevice fake_device;

void* allocate_fake(std::size_t bytes, HsOutcome* outcome) {
    *outcome = {};
    if (fake_device.used + bytes > fake_device.room) {
        outcome->status = HS_MEMORY;
        return nullptr;
    }
    ++fake_device.allocations;
    fake_device.used += bytes;
    void* const block = ::operator new(1);
    fake_device.blocks[block] = bytes;
    return block;
}

void release_fake(void* block) {
    const auto at = fake_device.blocks.find(block);
    if (at == fake_device.blocks.end()) std::abort();  // a destructor calls
    fake_device.used -= at->second;
    fake_device.blocks.erase(at);
    fake_device.released_on.push_back(fake_device.current);
    ::operator delete(block);
}

HsPlugin fake_library(std::int32_t reuses_memory) {
    HsPlugin library{};
    library.name = "fake";
    library.architectures = "";
    library.reuses_memory = reuses_memory;
    library.select = [](int device, HsOutcome* outcome) {
        *outcome = {};
        fake_device.current = device;
    };
    library.allocate = allocate_fake;
    library.release = release_fake;
    return library;
}

const HsPlugin kReusing = fake_library(1), kStrict = fake_library(0);

/// A fresh device; kept blocks are released at the end.
struct FakeDeviceScope {
    FakeDeviceScope() { fake_device = {}; }
    ~FakeDeviceScope() { release_unused_gpu_memory(); }
    FakeDeviceScope(const FakeDeviceScope&) = delete;
    FakeDeviceScope& operator=(const FakeDeviceScope&) = delete;
};

/// One call that takes blocks of these bytes.
void take_bytes(const HsPlugin& library, const std::vector<std::int64_t>& sizes) {
    gpu::Memory memory(library, "call");
    for (const std::int64_t bytes : sizes) memory.take<char>(bytes);
}

}  // namespace

TEST_CASE("the forced backend is the one that ran", "[backend]") {
    const AttentionCase c({1, 2, 2, 30, 30, 8, 8}, 1);
    const auto names = available_backends();
    REQUIRE(names.size() >= 2);
    REQUIRE(names.back() == "reference");
    for (const std::string& name : names) {
        force_backend(name);
        run(c, attention);
        REQUIRE(last_backend() == name);  // stated by the code that ran, not by the switch
        REQUIRE(chosen_backend() == name);
        REQUIRE(chosen_device().starts_with(name == "cuda" || name == "hip" ? name + ":0" : "cpu"));
    }
    force_backend("auto");
    run(c, attention);
    REQUIRE(last_backend() == names.front());
    REQUIRE(chosen_backend() == names.front());
}

TEST_CASE("an unknown backend is refused with the names that exist", "[backend]") {
    try {
        force_backend("AVX9");
        FAIL("accepted");
    } catch (const Error& error) {
        REQUIRE(error.found() == "AVX9");
        REQUIRE(error.expected().find("reference") != std::string::npos);
    }
}

TEST_CASE("GPU operators without a library name what is missing", "[backend]") {
    const auto names = available_backends();
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    REQUIRE(gpu_problem("cuda").empty() == has("cuda"));
    REQUIRE(gpu_problem("hip").empty() == has("hip"));
    if (has("cuda") || has("hip")) return;
    REQUIRE_THROWS_AS(force_gpu("cuda", 0), Error);
    const AttentionCase c({1, 1, 1, 4, 4, 8, 8}, 1);
    REQUIRE_THROWS_AS(run(c, attention_gpu), Error);
    // Views choose: memory of a GPU never reaches a loop of the processor, whatever backend is forced.
    AttentionInput input = c.input();
    input.key.device = Device::gpu;
    REQUIRE_THROWS_WITH(attention(input, {}), Catch::Contains("[device] expected one for all views"));
    input.query.device = input.value.device = Device::gpu;
    REQUIRE_THROWS_WITH(attention(input, {}), Catch::Contains("expected a GPU library (cuda or hip) and a device"));
}

TEST_CASE("shapes and options that do not fit are refused before any work", "[attention]") {
    AttentionCase c({1, 4, 2, 30, 30, 8, 8}, 1);
    std::vector<float> memory(4 * 30 * 8);
    const OutputView output{memory.data(), 0, 30 * 8, 8};
    Statistics statistics;
    REQUIRE_THROWS_AS(attention(c.input(), output, &c.request, nullptr), Error);
    REQUIRE_THROWS_AS(attention(c.input(), output, nullptr, &statistics), Error);
    AttentionInput input = c.input();
    input.key.size = 7;
    REQUIRE_THROWS_AS(attention(input, output), Error);
    input = c.input();
    input.query.heads = 3;
    REQUIRE_THROWS_AS(attention(input, output), Error);
    c.rule.slopes = {1.0F};
    REQUIRE_THROWS_AS(attention(c.input(), output), Error);
}

TEST_CASE("A second equal call asks a GPU for no memory", "[backend][memory]") {
    const FakeDeviceScope scope;
    const std::vector<std::int64_t> sizes{4000, 1, 4001, 0, 3 * kMegabyte};
    take_bytes(kReusing, sizes);
    CHECK(fake_device.allocations == 5);
    take_bytes(kReusing, sizes);
    take_bytes(kReusing, {3 * kMegabyte - 5, 4090});  // in blocks of the same sizes
    CHECK(fake_device.allocations == 5);
    CHECK(fake_device.released_on.empty());
    {
        gpu::Memory one(kReusing, "one"), two(kReusing, "two");
        const void* first = one.take<char>(4000);
        const void* second = two.take<char>(4000);
        CHECK(first != second);
        two.take<char>(4000);  // a third block of this size
    }
    CHECK(fake_device.allocations == 6);
    release_unused_gpu_memory();
    CHECK(fake_device.blocks.empty());
    CHECK(fake_device.released_on == std::vector<int>(6, 0));
}

TEST_CASE("A full GPU gets kept blocks back before a call fails", "[backend][memory]") {
    const FakeDeviceScope scope;
    fake_device.room = 10 * std::size_t{kMegabyte};
    take_bytes(kReusing, {4 * kMegabyte, 3 * kMegabyte});
    CHECK(fake_device.blocks.size() == 2);
    gpu::Memory memory(kReusing, "call");
    memory.take<char>(6 * kMegabyte);
    CHECK(fake_device.blocks.size() == 1);
    CHECK(fake_device.released_on == std::vector<int>{0, 0});
    REQUIRE_THROWS_WITH(memory.take<char>(5 * kMegabyte), Catch::Contains("CUDA out of memory. In [call]"));
    memory.take<char>(4 * kMegabyte);
    CHECK(fake_device.used == fake_device.room);
}

TEST_CASE("Kept memory of a GPU is bounded", "[backend][memory]") {
    const FakeDeviceScope scope;
    take_bytes(kReusing, {40 * kMegabyte, 40 * kMegabyte, 40 * kMegabyte, 40 * kMegabyte, 40 * kMegabyte});
    CHECK(fake_device.used == 120 * std::size_t{kMegabyte});
    take_bytes(kReusing, {65 * kMegabyte});
    CHECK(fake_device.used == 120 * std::size_t{kMegabyte});  // too large to be kept
    take_bytes(kReusing, {10 * kMegabyte});
    CHECK(fake_device.used == 90 * std::size_t{kMegabyte});  // the oldest is gone
    CHECK(fake_device.used <= gpu::kMostKeptBytes);
    take_bytes(kReusing, std::vector<std::int64_t>(2000, 1));
    CHECK(fake_device.blocks.size() < 2000);
}

TEST_CASE("A block that is kept is larger than its request by an eighth at most, or by 512 bytes",
          "[backend][memory]") {
    for (std::size_t bytes = 1; bytes <= 2 * gpu::kLargestKeptBlock; bytes += 1 + bytes / 7) {
        const std::size_t block = gpu::block_bytes(kReusing, bytes);
        INFO(bytes << ": " << block);
        CHECK(block >= bytes);
        CHECK(block - bytes <= std::max<std::size_t>(511, bytes / 8));
        CHECK(gpu::block_bytes(kReusing, block) == block);
        CHECK(gpu::block_bytes(kStrict, bytes) == bytes);
        if (bytes > gpu::kLargestKeptBlock) CHECK(block == bytes);
    }
}

TEST_CASE("A library that detects uninitialized reads gets exact requests, and every block back", "[backend][memory]") {
    const FakeDeviceScope scope;
    for (int call = 1; call <= 2; ++call) {
        {
            gpu::Memory memory(kStrict, "call");
            memory.take<char>(4001);
            CHECK(fake_device.used == 4001);
        }
        CHECK(fake_device.blocks.empty());
        CHECK(fake_device.allocations == call);
    }
}

TEST_CASE("A change of the GPU releases what the last one keeps", "[backend][memory]") {
    const FakeDeviceScope scope;
    take_bytes(kReusing, {4000, 5000});
    fake_device.current = 3;
    gpu::choose("cuda", 1);
    CHECK(fake_device.blocks.empty());
    CHECK(fake_device.released_on == std::vector<int>{0, 0});
    take_bytes(kReusing, {4000});
    take_bytes(kReusing, {4000});
    CHECK(fake_device.allocations == 3);
    force_backend("auto");
    CHECK(fake_device.blocks.empty());
    CHECK(fake_device.released_on == std::vector<int>{0, 0, 1});
}

TEST_CASE("Code runs on architectures that it was built for, and on newer ones of the same generation", "[backend]") {
    CHECK(runs_on("sm_80+sm_90", "sm_80"));
    CHECK(runs_on("sm_80+sm_90", "sm_89"));
    CHECK(runs_on("sm_120", "sm_121"));
    CHECK_FALSE(runs_on("sm_80+sm_90", "sm_75"));
    CHECK_FALSE(runs_on("sm_86", "sm_80"));
    CHECK_FALSE(runs_on("sm_90", "sm_100"));
    CHECK(runs_on("sm_90a", "sm_90"));
    CHECK_FALSE(runs_on("sm_100a", "sm_103"));
    CHECK(runs_on("gfx90a:xnack-+gfx1030", "gfx90a"));
    CHECK(runs_on("gfx90a+gfx1030", "gfx1030"));
    CHECK_FALSE(runs_on("gfx90a+gfx1030", "gfx908"));
    CHECK_FALSE(runs_on("gfx90a", "sm_90"));
    // Not known: a driver without names, a list without names, a name of several architectures.
    CHECK(runs_on("gfx90a", "gfx90"));
    CHECK(runs_on("", "sm_90"));
    CHECK(runs_on("native", "gfx906"));
    CHECK(runs_on("gfx9-4-generic", "gfx942"));
}
