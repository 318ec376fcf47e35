// SPDX-License-Identifier: GPL-3.0-or-later
// The backend that is forced is the one that runs, and nonsense is refused by name.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/backend.h"
#include "kernels/gpu/libraries.h"
#include "kernels/gpu/operators.h"
#include "tests/kernels/attention_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::run;

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
