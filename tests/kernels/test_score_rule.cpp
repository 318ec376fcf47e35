// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers of a ScoreRule, T5's buckets, the histogram's edges, and the checks that every backend relies on.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/backend.h"
#include "kernels/score_pairs.h"
#include "tests/kernels/golden_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::load_golden;

TEST_CASE("the histogram has the 167 edges of the file format", "[score_rule][golden]") {
    const auto golden = load_golden();
    const auto& edges = histogram_edges();
    REQUIRE(golden.edges.size() == edges.size());
    CHECK(edges.front() == -std::numeric_limits<double>::infinity());
    CHECK(edges.back() == std::numeric_limits<double>::infinity());
    for (std::size_t n = 1; n + 1 < edges.size(); ++n) {
        CHECK(edges[n] == Approx(golden.edges[n]).epsilon(1e-15));
        CHECK(edges[n] < edges[n + 1]);
        CHECK(edges[n] == -edges[edges.size() - 1 - n]);
    }
}

TEST_CASE("a bin holds its lower edge and not its upper one", "[score_rule]") {
    const auto& edges = histogram_edges();
    for (int bin = 1; bin < kHistogramBins; ++bin) {
        const double edge = edges[static_cast<std::size_t>(bin)];
        CHECK(histogram_bin(edge) == bin);
        CHECK(histogram_bin(std::nextafter(edge, -1e300)) == bin - 1);
    }
    CHECK(histogram_bin(-std::numeric_limits<double>::infinity()) == 0);
    CHECK(histogram_bin(std::numeric_limits<double>::infinity()) == kHistogramBins - 1);
    CHECK(histogram_bin(std::nan("")) == -1);
}

TEST_CASE("The histogram samples rows of long texts only, unless a step is given", "[score_rule]") {
    CHECK(histogram_step(0, 1024) == 1);
    CHECK(histogram_step(0, 1025) == 8);
    CHECK(histogram_step(1, 4096) == 1);
    CHECK(histogram_step(5, 7) == 5);
}

TEST_CASE("T5's buckets are those of its authors, also far beyond the table", "[score_rule][golden]") {
    for (const auto& golden : load_golden().buckets) {
        constexpr std::int64_t heads = 2;
        std::vector<float> table;
        for (std::int64_t n = 0; n < golden.buckets * heads; ++n) table.push_back(static_cast<float>(n));
        ScoreRule rule;
        set_bucketed_bias(rule, table, golden.buckets, heads, golden.max_distance, golden.bidirectional, 10, 10);
        for (std::int64_t relative = -golden.reach; relative <= golden.reach; ++relative) {
            const std::int64_t bucket = golden.bucket.at(static_cast<std::size_t>(relative + golden.reach));
            INFO("relative position " << relative);
            for (std::int64_t h = 0; h < heads; ++h) {
                REQUIRE(distance_bias(rule, h, relative) == static_cast<float>(bucket * heads + h));
            }
        }
    }
    ScoreRule rule;
    const std::vector<float> table(8, 0.0F);
    CHECK_THROWS_AS(set_bucketed_bias(rule, table, 4, 3, 128, true, 4, 4), Error);
    CHECK_THROWS_AS(set_bucketed_bias(rule, table, 8, 1, 2, true, 4, 4), Error);
    CHECK_THROWS_AS(set_bucketed_bias(rule, table, 2, 4, 128, true, 4, 4), Error);
}

TEST_CASE("the range of a row holds exactly its first and last visible key", "[score_rule]") {
    for (const auto& [causal, segment] : {std::pair{true, 1}, {false, 1}, {true, 3}, {false, 4}}) {
        for (const int left : {-1, 0, 2}) {
            for (const int right : {-1, 0, 1}) {
                for (const int first : {0, 2}) {
                    for (const int offset : {-3, 0, 4, 20}) {
                        ScoreRule rule;
                        rule.window_segment = segment;
                        rule.causal = causal;
                        rule.window_left = left;
                        rule.window_right = right;
                        rule.first_keys = first;
                        rule.query_offset = offset;
                        rule.key_begin = {1};
                        rule.key_length = {9};
                        rule.query_length = {7};
                        const SequenceBounds bounds = sequence_bounds(rule, 0, 8, 11);
                        for (std::int64_t i = 0; i < 8; ++i) {
                            std::int64_t begin = 0, end = 0;
                            for (std::int64_t j = 0; j < 11; ++j) {
                                if (!allowed(rule, bounds, 0, 0, 1, i, j)) continue;
                                if (end == 0) begin = j;
                                end = j + 1;
                            }
                            const KeyRange range = key_range(rule, bounds, i);
                            INFO(causal << segment << left << right << first << " offset " << offset << " row " << i);
                            REQUIRE(range.begin == begin);
                            REQUIRE(range.end == end);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("every impossible input is refused with its place", "[score_rule][errors]") {
    auto golden = load_golden();
    const auto& c = golden.cases.at(10);
    const AttentionInput good = c.input();
    REQUIRE_NOTHROW(check_attention(good));
    REQUIRE_NOTHROW(check_statistics(good, c.request));
    const auto refused = [&](const std::string& where, const std::function<void(AttentionInput&, ScoreRule&)>& spoil) {
        AttentionInput input = good;
        ScoreRule rule = c.rule;
        input.rule = &rule;
        spoil(input, rule);
        INFO(where);
        try {
            check_attention(input);
            FAIL("not refused");
        } catch (const Error& error) {
            CHECK(error.where() == where);
            CHECK_FALSE(error.expected().empty());
            CHECK_FALSE(error.found().empty());
        }
    };
    refused("score rule", [](AttentionInput& input, ScoreRule&) { input.rule = nullptr; });
    refused("query", [](AttentionInput& input, ScoreRule&) { input.query.length = 0; });
    refused("query", [](AttentionInput& input, ScoreRule&) { input.query.data = nullptr; });
    refused("key", [](AttentionInput& input, ScoreRule&) { input.key.batch = 1; });
    refused("key", [](AttentionInput& input, ScoreRule&) { input.key.size -= 1; });
    refused("key", [](AttentionInput& input, ScoreRule&) { input.key.heads = 3; });
    refused("value", [](AttentionInput& input, ScoreRule&) { input.value.length -= 1; });
    refused("scale", [](AttentionInput&, ScoreRule& rule) { rule.scale = std::nan(""); });
    refused("soft cap", [](AttentionInput&, ScoreRule& rule) { rule.soft_cap = -1.0; });
    refused("window", [](AttentionInput&, ScoreRule& rule) { rule.window_left = -2; });
    refused("window", [](AttentionInput&, ScoreRule& rule) { rule.window_right = std::int64_t{1} << 62; });
    refused("first keys", [](AttentionInput&, ScoreRule& rule) { rule.first_keys = -1; });
    refused("window segment", [](AttentionInput&, ScoreRule& rule) { rule.window_segment = 0; });
    refused("far distance", [](AttentionInput&, ScoreRule& rule) { rule.far_distance = -2; });
    refused("near begin", [](AttentionInput&, ScoreRule& rule) { rule.far_distance = 3; });
    refused("near begin", [](AttentionInput& input, ScoreRule& rule) {
        rule.far_distance = 3;
        rule.near_begin = input.query.size;
    });
    refused("query offset", [](AttentionInput&, ScoreRule& rule) { rule.query_offset = std::int64_t{1} << 40; });
    refused("slopes", [](AttentionInput&, ScoreRule& rule) { rule.slopes = {1.0F}; });
    refused("slopes", [](AttentionInput&, ScoreRule& rule) { rule.slopes = {1.0F, INFINITY}; });
    refused("sink_logits", [](AttentionInput&, ScoreRule& rule) { rule.sink_logits = {1.0F, 2.0F, 3.0F}; });
    refused("distance_bias", [](AttentionInput&, ScoreRule& rule) { rule.bias_length = 3; });
    refused("blocks", [](AttentionInput&, ScoreRule& rule) { rule.blocks.block_size = 1; });
    refused("block visibility", [](AttentionInput&, ScoreRule& rule) { rule.blocks.visible.pop_back(); });
    refused("query_length", [](AttentionInput&, ScoreRule& rule) { rule.query_length = {99, 1}; });
    refused("key_length", [](AttentionInput&, ScoreRule& rule) { rule.key_length = {1}; });
    refused("key_begin", [](AttentionInput&, ScoreRule& rule) { rule.key_begin = {-1, 0}; });
    StatisticsRequest request;
    request.tokens.assign(3, 0);
    CHECK_THROWS_AS(check_statistics(good, request), Error);
    request = {};
    request.local_distances = {-1};
    CHECK_THROWS_AS(check_statistics(good, request), Error);
    request = {};
    request.thumbnail_size = 0;
    CHECK_THROWS_AS(check_statistics(good, request), Error);
}
