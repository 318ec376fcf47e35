// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/oracle/golden.h"

using namespace headscope;

namespace {

void require_same(const kernels::ScoreRule& a, const kernels::ScoreRule& b) {
    CHECK(a.scale == b.scale);
    CHECK(a.soft_cap == b.soft_cap);
    CHECK(a.causal == b.causal);
    CHECK(a.query_offset == b.query_offset);
    CHECK(a.window_left == b.window_left);
    CHECK(a.window_right == b.window_right);
    CHECK(a.first_keys == b.first_keys);
    CHECK(a.window_segment == b.window_segment);
    CHECK(a.far_distance == b.far_distance);
    CHECK(a.near_begin == b.near_begin);
    CHECK(a.slopes == b.slopes);
    CHECK(a.distance_bias == b.distance_bias);
    CHECK(a.bias_length == b.bias_length);
    CHECK(a.bias_origin == b.bias_origin);
    CHECK(a.beyond_table == b.beyond_table);
    CHECK(a.sink_logits == b.sink_logits);
    CHECK(a.offsets == b.offsets);
    CHECK(a.offset_form == b.offset_form);
    CHECK(a.blocks.block_size == b.blocks.block_size);
    CHECK(a.blocks.blocks == b.blocks.blocks);
    CHECK(a.blocks.visible == b.blocks.visible);
    CHECK(a.blocks.own == b.blocks.own);
    CHECK(a.normaliser == b.normaliser);
    CHECK(a.query_length == b.query_length);
    CHECK(a.key_begin == b.key_begin);
    CHECK(a.key_length == b.key_length);
}

}  // namespace

TEST_CASE("A score rule comes back as its batch row had it", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {9};
    a.layers = 1;
    a.record.maps = true;
    kernels::ScoreRule rule;
    rule.scale = 0.31;
    rule.soft_cap = 50;
    rule.causal = false;
    rule.query_offset = 3;
    rule.window_left = 4;
    rule.window_right = 5;
    rule.first_keys = 2;
    rule.window_segment = 6;
    rule.far_distance = 7;
    rule.near_begin = 2;
    rule.beyond_table = kernels::BeyondTable::zero;
    rule.normaliser = kernels::Normaliser::sparsemax;
    rule.slopes = {0.5F, 0.25F, 0.125F, 0.0625F};
    rule.sink_logits = {1, 2, 3, 4};
    rule.offsets = {-1, -0.5F, 0, 2};
    rule.offset_form = kernels::OffsetForm::constant;
    rule.bias_length = 7;
    rule.bias_origin = 5;
    for (int i = 0; i < 4 * 7; ++i) rule.distance_bias.push_back(0.5F * static_cast<float>(i));
    rule.blocks.block_size = 4;
    rule.blocks.blocks = 3;
    rule.blocks.own = false;
    for (int i = 0; i < 2 * 4 * 3; ++i) rule.blocks.visible.push_back(static_cast<std::uint8_t>(i % 5 == 0));
    rule.query_length = {9, 8};
    rule.key_begin = {0, 1};
    rule.key_length = {9, 7};
    const std::int64_t row = GENERATE(0, 1);

    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, tests::synthetic_header(a));
    const auto map = tests::synthetic_map(a, 9, 1);
    rule.normaliser = GENERATE(kernels::Normaliser::sparsemax, kernels::Normaliser::taylor_diagonal_per_order);
    writer.write_map(0, 0, map.query, map.key, map.row_constant, rule, row);
    writer.write_site(0, 0, tests::synthetic_statistics(a, 9, 0, 1), 0);
    writer.publish();

    kernels::ScoreRule expected = rule;
    const auto index = static_cast<std::size_t>(row);
    expected.query_length = {rule.query_length[index]};
    expected.key_begin = {rule.key_begin[index]};
    expected.key_length = {rule.key_length[index]};
    const auto first = rule.blocks.visible.begin() + row * 12;
    expected.blocks.visible.assign(first, first + 12);
    const auto read = store::AnalysisFile::open(path)->map(0, 0);
    REQUIRE(read.has_value());
    require_same(read->rule, expected);
}

TEST_CASE("A neutral rule comes back neutral", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {5};
    a.layers = 1;
    a.record.maps = true;
    const test::TemporaryFolder folder;
    tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
    const auto read = store::AnalysisFile::open(folder / "a.headscope.h5")->map(0, 0);
    REQUIRE(read.has_value());
    require_same(read->rule, tests::synthetic_map(a, 5, 1).rule);
}

TEST_CASE("Maps of integers get row constants of their own, so that rows sum to 1", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {33};
    a.layers = 1;
    a.record.maps = true;
    a.map_type = store::MapType::int16;
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, tests::synthetic_header(a));
    auto map = tests::synthetic_map(a, 33, 1);
    // Scores of several hundred: rounding q and k moves them by more than a tenth.
    for (float& value : map.query) value *= 20;
    for (float& value : map.key) value *= 10;
    writer.write_map(0, 0, map.query, map.key, map.row_constant, map.rule, 0);
    writer.write_site(0, 0, tests::synthetic_statistics(a, 33, 0, 1), 0);
    writer.publish();
    const auto read = store::AnalysisFile::open(path)->map(0, 0);
    REQUIRE(read.has_value());
    for (std::int64_t h = 0; h < a.heads; ++h) {
        std::vector<float> weights(33 * 33);
        kernels::attention_weights(read->input(), read->row_constant, 0, h, 0, 33, 0, 33, weights.data());
        for (std::size_t i = 0; i < 33; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < 33; ++j) sum += weights[i * 33 + j];
            // A score of size s is rounded to s * 2^-24 in float32, and so is the constant: here s < 2^12.
            REQUIRE(sum == Approx(1.0).margin(std::ldexp(1.0, -10)));
        }
    }
}

TEST_CASE("Queries and keys as integers are off by half a step, however large they are", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {9};
    a.layers = 1;
    a.record.maps = true;
    a.map_type = store::MapType::int16;
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    store::AnalysisWriter writer(path, tests::synthetic_header(a));
    auto map = tests::synthetic_map(a, 9, 1);
    const float size = GENERATE(1.0F, 1e5F, 1e-6F, 0.0F);
    for (float& value : map.key) value *= size;
    writer.write_map(0, 0, map.query, map.key, map.row_constant, map.rule, 0);
    writer.write_site(0, 0, tests::synthetic_statistics(a, 9, 0, 1), 0);
    writer.publish();
    const auto file = store::AnalysisFile::open(path);
    CHECK(file->header().map_type == store::MapType::int16);
    const auto read = file->map(0, 0);
    REQUIRE(read.has_value());
    const auto check = [](const std::vector<float>& found, const std::vector<float>& wanted) {
        double largest = 0;
        for (const float value : wanted) largest = std::max(largest, std::abs(static_cast<double>(value)));
        REQUIRE(found.size() == wanted.size());
        // Half a step of 1/32767, and the rounding of the step and of the product in float32.
        for (std::size_t i = 0; i < found.size(); ++i)
            REQUIRE(std::abs(static_cast<double>(found[i]) - wanted[i]) <= largest * (0.5 / 32767 + 0x1p-22));
    };
    check(read->query, map.query);
    check(read->key, map.key);
}

TEST_CASE("Maps with numbers that are not finite are refused, not made integers", "[store]") {
    tests::SyntheticAnalysis a;
    a.lengths = {3};
    a.layers = 1;
    a.record.maps = true;
    a.map_type = store::MapType::int16;
    const test::TemporaryFolder folder;
    store::AnalysisWriter writer(folder / "a.headscope.h5", tests::synthetic_header(a));
    auto map = tests::synthetic_map(a, 3, 1);
    map.key.back() = GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
    REQUIRE_THROWS_AS(writer.write_map(0, 0, map.query, map.key, map.row_constant, map.rule, 0), Error);
}

TEST_CASE("Maps in float16, which nothing writes any more, open", "[store]") {
    const auto file = store::AnalysisFile::open(test::golden_file("older/maps-float16.headscope.h5"));
    CHECK(file->header().map_type == store::MapType::float16);
    const auto map = file->map(0, 0);
    REQUIRE(map.has_value());
    std::vector<float> weights(static_cast<std::size_t>(map->queries * map->keys));
    kernels::attention_weights(map->input(), map->row_constant, 0, 0, 0, map->queries, 0, map->keys, weights.data());
    CHECK(weights[0] == Approx(1.0).margin(1e-3));  // the first token sees itself alone
}
