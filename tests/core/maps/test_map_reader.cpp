// SPDX-License-Identifier: GPL-3.0-or-later
// One head's map out of a file against the whole site's.
#include <catch2/catch.hpp>

#include "core/base/error.h"
#include "core/maps/map_reader.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"

using namespace headscope;

namespace {

constexpr std::int64_t kLength = 21;

/// Rules that differ from head to head in everything that can.
kernels::ScoreRule rule_named(const std::string& name, const tests::SyntheticAnalysis& a) {
    kernels::ScoreRule rule;
    rule.scale = 0.35;
    const auto number = [&](std::size_t i) { return 0.1F * static_cast<float>(i + 1); };
    const auto numbers = [&](std::size_t size) {
        std::vector<float> values(size);
        for (std::size_t i = 0; i < size; ++i) values[i] = number(i);
        return values;
    };
    const auto heads = static_cast<std::size_t>(a.heads);
    if (name == "window") {
        rule.window_left = 5;
        rule.first_keys = 2;
    } else if (name == "slopes") {
        rule.slopes = numbers(heads);
    } else if (name == "sinks") {
        rule.sink_logits = numbers(heads);
    } else if (name == "bias") {
        rule.causal = false;
        rule.bias_length = 9;
        rule.bias_origin = 4;
        rule.distance_bias = numbers(heads * 9);
    } else if (name == "blocks") {
        rule.blocks.block_size = 4;
        rule.blocks.blocks = 6;
        for (std::size_t i = 0; i < heads * 6; ++i) rule.blocks.visible.push_back(i % 3 == 0 ? 1 : 0);
    } else if (name == "padded") {
        rule.query_length = rule.key_length = {kLength - 2};
    }
    return rule;
}

}  // namespace

TEST_CASE("One head's map is the whole site's, whatever the rule", "[tiles]") {
    tests::SyntheticAnalysis a;
    a.lengths = {13, kLength};
    a.layers = 2;
    a.heads = 6;
    a.key_value_heads = GENERATE(1, 3, 6);
    a.record.maps = true;
    a.map_type = GENERATE(store::MapType::float32, store::MapType::int16);
    const std::string name = GENERATE("plain", "window", "slopes", "sinks", "bias", "blocks", "padded");
    CAPTURE(a.key_value_heads, store::map_type_name(a.map_type), name);
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    const auto made = tests::synthetic_map(a, kLength, 5);
    writer.write_map(1, 1, made.query, made.key, made.row_constant, rule_named(name, a), 0);
    writer.write_site(1, 1, tests::synthetic_statistics(a, kLength, 1, 1), 0);
    const auto file = store::AnalysisFile::open(writer.partial_path());
    const auto whole = file->map(1, 1);
    REQUIRE(whole);
    for (std::int64_t head = 0; head < a.heads; ++head) {
        const auto one = file->map_of_head(1, 1, head);
        REQUIRE(one);
        CHECK((one->heads == 1 && one->key_value_heads == 1 && one->queries == kLength && one->keys == kLength));
        CHECK(one->query.size() == static_cast<std::size_t>(kLength * a.key_size));
        CHECK(one->key.size() == one->query.size());
        std::vector<float> expected(kLength * kLength), found(expected.size());
        kernels::attention_weights(whole->input(), whole->row_constant, 0, head, 0, kLength, 0, kLength,
                                   expected.data());
        kernels::attention_weights(one->input(), one->row_constant, 0, 0, 0, kLength, 0, kLength, found.data());
        CHECK(found == expected);
        const auto map = maps::read_head_map(*file, 1, 1, head);
        REQUIRE(map);
        const auto values = map->values({0, kLength, 0, kLength});
        bool same = true;
        for (std::size_t i = 0; i < values.size(); ++i) {
            // Pairs that are not allowed are NaN in tiles, 0 from the operator.
            same = same && (values[i] == expected[i] || (values[i] != values[i] && expected[i] == 0.0F));
        }
        CHECK(same);
    }
    CHECK_FALSE(file->map_of_head(0, 1, 0));  // not done yet
    CHECK(maps::read_head_map(*file, 1, 0, 0) == nullptr);
    for (const std::int64_t head : {-1, 6})
        CHECK_THROWS_MATCHES(maps::read_head_map(*file, 1, 1, head), Error,
                             test::IsError(ErrorCode::usage, "expected a head from 0 to 5"));
}

TEST_CASE("A file without maps has none of a head", "[tiles]") {
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5");
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    CHECK(maps::read_head_map(*file, 0, 0, 0) == nullptr);
    CHECK_FALSE(file->map_of_head(0, 99, 0));
}

TEST_CASE("A mean over sequences is of those that are done", "[tiles]") {
    tests::SyntheticAnalysis a;
    a.lengths = {13, 24, 19};
    a.record.maps = true;
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    for (const std::int64_t s : {0, 2}) tests::write_synthetic_layer(writer, a, s, 1);
    const auto file = store::AnalysisFile::open(writer.partial_path());
    const auto mean = maps::read_mean_map(*file, 1, 3);
    REQUIRE(mean);
    CHECK(mean->sequences() == 2);
    CHECK(mean->queries() == 19);
    const auto first = maps::read_head_map(*file, 0, 1, 3), second = maps::read_head_map(*file, 2, 1, 3);
    REQUIRE((first && second));
    const maps::Cells one{7, 8, 4, 5};
    const double expected = (double{first->values(one).front()} + double{second->values(one).front()}) / 2;
    CHECK(double{mean->values(one).front()} == Approx(expected));
    CHECK(maps::read_mean_map(*file, 0, 3) == nullptr);  // of which nothing is done
}
