// SPDX-License-Identifier: GPL-3.0-or-later
// Against tests/oracle/generate/corruption.py, and against shares that must come out.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/data/batch/batch_source.h"
#include "core/data/batch/corruption.h"
#include "tests/core/base/error_matcher.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test;
using data::Corruption;
using data::ObjectiveSettings;
using data::SpoiltSequence;

namespace {

ObjectiveSettings shuffle_random(double shuffle, double random) {
    ObjectiveSettings objective;
    objective.kind = "shuffle_random";
    objective.shuffle = shuffle;
    objective.random = random;
    return objective;
}

/// Within five standard deviations of `count` draws of a chance.
bool is_share(std::int64_t hits, std::int64_t count, double chance) {
    const auto n = static_cast<double>(count);
    return std::abs(static_cast<double>(hits) - n * chance) <= 5 * std::sqrt(n * chance * (1 - chance));
}

constexpr std::int64_t ids = 103;
const data::SpecialIds special{100, 101, -1, 102, {}};

SpoiltSequence text(std::int64_t length) {
    SpoiltSequence sequence;
    sequence.ids.push_back(special.first);
    for (std::int64_t i = 0; i < length; ++i) sequence.ids.push_back(i % 100);
    sequence.ids.push_back(special.last);
    return sequence;
}

}  // namespace

TEST_CASE("Spoilt sequences are those of the script", "[data][corruption]") {
    std::ifstream file(test::golden_file("corruption.json"));
    const auto cases = nlohmann::json::parse(file);
    REQUIRE(cases.size() == 42);
    for (const auto& one : cases) {
        INFO(one.dump());
        ObjectiveSettings objective;
        objective.kind = one.at("kind");
        objective.mask = one.value("mask", 0.0);
        objective.shuffle = one.value("shuffle", 0.0);
        objective.random = one.value("random", 0.0);
        const auto of = one.at("special").get<std::vector<std::int64_t>>();
        const bool hashed = one.contains("bits") || one.contains("points");
        const Corruption corruption(objective, {of[0], of[1], of[2], of[3], {of[4]}}, one.at("vocabulary"), hashed);
        SpoiltSequence sequence;
        sequence.ids = one.at("ids").get<std::vector<std::int64_t>>();
        if (one.contains("points")) sequence.points = one.at("points").get<std::vector<std::int64_t>>();
        for (const auto& bits : one.value("bits", nlohmann::json::array()))
            for (const auto& bit : bits) sequence.bits.push_back(bit.get<std::uint8_t>());
        data::Random random(one.at("seed"), one.at("index"));
        corruption(sequence, random);
        const auto& spoilt = one.at("spoilt");
        CHECK(sequence.ids == spoilt.at("ids").get<std::vector<std::int64_t>>());
        CHECK(sequence.targets == spoilt.at("labels").get<std::vector<std::int64_t>>());
        CHECK(sequence.points == spoilt.value("points", std::vector<std::int64_t>()));
        std::vector<std::uint8_t> bits;
        for (const auto& word : spoilt.value("bits", nlohmann::json::array()))
            for (const auto& bit : word) bits.push_back(bit.get<std::uint8_t>());
        CHECK(sequence.bits == bits);
    }
}

TEST_CASE("Of the drawn tokens four of five are masked, one of ten is another and one of ten stays",
          "[data][corruption]") {
    ObjectiveSettings objective;
    objective.kind = "masked";
    const Corruption corruption(objective, special, ids, false);
    SpoiltSequence sequence = text(100'000);
    const std::vector<std::int64_t> was = sequence.ids;
    data::Random random(1, 2);
    corruption(sequence, random);
    CHECK(sequence.ids.front() == special.first);
    CHECK(sequence.targets.front() == data::no_target);
    CHECK(sequence.targets.back() == data::no_target);
    std::int64_t drawn = 0, masked = 0, same = 0, strange = 0;
    for (std::size_t i = 0; i < was.size(); ++i) {
        if (sequence.targets[i] == data::no_target) {
            CHECK(sequence.ids[i] == was[i]);
            continue;
        }
        CHECK(sequence.targets[i] == was[i]);
        ++drawn;
        masked += sequence.ids[i] == special.mask ? 1 : 0;
        same += sequence.ids[i] == was[i] ? 1 : 0;
        strange += sequence.ids[i] >= 100 && sequence.ids[i] != special.mask ? 1 : 0;
    }
    CHECK(is_share(drawn, 100'000, 0.15));
    CHECK(is_share(masked, drawn, 0.8));
    CHECK(is_share(same, drawn, 0.1 + 0.1 / 100));  // one of a hundred others is the same
    CHECK(strange == 0);
}

TEST_CASE("Shuffled tokens are of the sequence, random ones are any, bits are fair", "[data][corruption]") {
    const Corruption corruption(shuffle_random(0.2, 0.5), special, ids, false);
    SpoiltSequence sequence = text(50'000);
    std::fill(sequence.ids.begin() + 1, sequence.ids.end() - 1, 7);
    data::Random random(3, 4);
    corruption(sequence, random);
    std::array<std::int64_t, 3> labels{};
    std::int64_t sevens = 0;
    for (std::size_t i = 1; i + 1 < sequence.ids.size(); ++i) {
        ++labels.at(static_cast<std::size_t>(sequence.targets[i]));
        if (sequence.targets[i] < 2) CHECK(sequence.ids[i] == 7);
        sevens += sequence.targets[i] == 2 && sequence.ids[i] == 7 ? 1 : 0;
    }
    CHECK(is_share(labels[1], 50'000, 0.2));
    CHECK(is_share(labels[2], 50'000, 0.8 * 0.5));
    CHECK(is_share(sevens, labels[2], 0.01));

    const Corruption hashes(shuffle_random(0, 1), {0, 2, 1, 4, {3}}, 6, true);
    SpoiltSequence words;
    words.ids.assign(20'000, 5);
    words.bits.assign(20'000 * 3, 1);
    hashes(words, random);
    CHECK(is_share(std::count(words.bits.begin(), words.bits.end(), 1), 60'000, 0.5));
    CHECK(std::count(words.targets.begin(), words.targets.end(), 2) == 20'000);
}

TEST_CASE("A permutation takes every token to one place", "[data][corruption]") {
    const Corruption corruption(shuffle_random(1, 0), special, ids, false);
    SpoiltSequence sequence = text(100);
    auto was = sequence.ids;
    data::Random random(5, 6);
    corruption(sequence, random);
    CHECK(sequence.ids != was);
    auto now = sequence.ids;
    std::sort(was.begin(), was.end());
    std::sort(now.begin(), now.end());
    CHECK(now == was);
}

TEST_CASE("What cannot be spoilt is refused", "[data][corruption]") {
    const auto refuses = [](const ObjectiveSettings& objective, const data::SpecialIds& of, std::int64_t count,
                            bool hashed, const std::string& what) {
        CHECK_THROWS_MATCHES(Corruption(objective, of, count, hashed), Error, IsError(ErrorCode::usage, what));
    };
    ObjectiveSettings objective;
    refuses(objective, special, ids, false, "found next_token");
    objective.kind = "masked";
    refuses(objective, special, ids, true, "which wants a vocabulary");
    refuses(objective, {100, 101, -1, -1, {}}, ids, false, "expected a tokenizer with <mask>");
    objective.mask = 1.5;
    refuses(objective, special, ids, false, "[objective.mask] expected a share from 0 to 1; found 1.5");
    refuses(shuffle_random(-0.1, 0), special, ids, false, "[objective.shuffle]");
    refuses(shuffle_random(0, NAN), special, ids, false, "[objective.random]");
    refuses(shuffle_random(0, 0), {0, 1, 2, 3, {4}}, 5, true, "expected ordinary tokens");
}
