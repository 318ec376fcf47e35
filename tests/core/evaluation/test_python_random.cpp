// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/evaluation/harness/python_random.h"
#include "tests/oracle/golden.h"

using namespace headscope;

TEST_CASE("Numbers are those of CPython's random.Random, whatever is drawn before them", "[evaluation]") {
    std::ifstream file(test::golden_file("python_random.json"));
    const auto golden = nlohmann::json::parse(file);
    REQUIRE(golden.size() == 4);
    for (const auto& wanted : golden) {
        CAPTURE(wanted["seed"].dump());
        evaluation::PythonRandom random(wanted["seed"].get<std::uint64_t>());
        for (const auto& number : wanted["random"]) CHECK(random.random() == number.get<double>());
        for (const auto& [count, number] : wanted["bits"].get<std::vector<std::pair<int, std::uint64_t>>>()) {
            CAPTURE(count);
            CHECK(random.bits(count) == number);
        }
        for (const auto& [end, number] : wanted["below"].get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>()) {
            CAPTURE(end);
            CHECK(random.below(end) == number);
        }
        using Drawn = std::vector<std::pair<std::size_t, std::vector<std::size_t>>>;
        for (const auto& [count, drawn] : wanted["sample"].get<Drawn>()) {
            CAPTURE(count);
            CHECK(random.sample(count, drawn.size()) == drawn);
        }
        for (const auto& [count, drawn] : wanted["choices"].get<Drawn>()) {
            CAPTURE(count);
            CHECK(random.choices(count, drawn.size()) == drawn);
        }
        for (int i = 1; i < 2000; ++i) random.random();
        CHECK(random.random() == wanted["later"].get<double>());
    }
}
