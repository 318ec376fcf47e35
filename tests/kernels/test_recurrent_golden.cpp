// SPDX-License-Identifier: GPL-3.0-or-later
// Attention from a state against what recurrent_numpy.py found, by the reference and by the kernels.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/recurrent.h"
#include "tests/kernels/forced.h"
#include "tests/oracle/golden.h"

using namespace headscope::kernels;
using headscope::kernels::testing::Forced;
using nlohmann::json;

namespace {

struct Sizes {
    std::int64_t heads, key_heads, tokens, key_size, value_size;
};

TensorView view_of(const std::vector<float>& values, std::int64_t heads, std::int64_t tokens, std::int64_t size) {
    const void* data = values.empty() ? nullptr : values.data();
    return {data, ElementType::float32, 1, heads, tokens, size, heads * tokens * size, tokens * size, size};
}

void compare(const json& expected, const std::string& field, const std::vector<double>& found, double tolerance) {
    INFO(field << ", tolerance " << tolerance);
    const auto wanted = expected.at(field).get<std::vector<double>>();
    REQUIRE(found.size() == wanted.size());
    for (std::size_t n = 0; n < found.size(); ++n) {
        INFO("element " << n << ": found " << found[n] << ", expected " << wanted[n]);
        REQUIRE(std::abs(found[n] - wanted[n]) <= tolerance * std::max(1.0, std::abs(wanted[n])));
    }
}

std::vector<double> wide(const std::vector<float>& values) {
    return {values.begin(), values.end()};
}

void check(const json& from, const Sizes& s, double scale, double tolerance) {
    const json& expected = from.at("expected");
    const json& settings = from.at("rule");
    const auto numbers = [&](const char* name) { return from.at(name).get<std::vector<float>>(); };
    RecurrentRule rule;
    rule.scale = scale;
    rule.delta = settings.at("delta").get<bool>();
    const auto decay = settings.at("decay").get<std::string>();
    rule.decay = decay == "none" ? Decay::none : decay == "head" ? Decay::head : Decay::channel;
    rule.chunk_size = settings.at("chunk_size").get<std::int64_t>();
    rule.decays_dropped = settings.at("decays_dropped").get<bool>();
    rule.reads_own_chunk = settings.at("reads_own_chunk").get<bool>();
    rule.kept = numbers("kept");
    rule.chunks = static_cast<std::int64_t>(rule.kept.size()) / s.heads;
    const std::vector<float> query = numbers("query"), key = numbers("key"), value = numbers("value");
    const std::vector<float> write = numbers("write"), log_decay = numbers("log_decay");
    const std::int64_t decays = rule.decay == Decay::channel ? s.key_size : 1;
    const RecurrentInput input{view_of(query, s.key_heads, s.tokens, s.key_size),
                               view_of(key, s.key_heads, s.tokens, s.key_size),
                               view_of(value, s.heads, s.tokens, s.value_size),
                               view_of(write, s.heads, s.tokens, 1),
                               view_of(log_decay, s.heads, s.tokens, decays),
                               &rule,
                               nullptr};
    const auto zeros = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count), 0.0F); };
    const bool chunks = rule.chunk_size > 0, fades = chunks && rule.decay != Decay::none;
    std::vector<float> output = zeros(s.heads * s.tokens * s.value_size);
    std::vector<float> now = zeros(s.heads * s.key_size * s.value_size), start = now, sum = zeros(s.heads * decays);
    recurrent_forward(input, {output.data(), ElementType::float32, 0, s.tokens * s.value_size, s.value_size},
                      {now.data(), chunks ? start.data() : nullptr, fades ? sum.data() : nullptr}, nullptr);
    compare(expected, "output", wide(output), tolerance);
    compare(expected, "state", wide(now), tolerance);
    if (chunks) compare(expected, "start", wide(start), tolerance);
    if (fades) compare(expected, "decay", wide(sum), tolerance);
    std::vector<float> dense = zeros(s.heads * s.tokens * s.tokens);
    ImplicitStatistics statistics;
    implicit_statistics(input, statistics, dense.data());
    compare(expected, "implicit", wide(dense), tolerance);
    // Sums over rows; a small weight counts for its logarithm.
    const double of_rows = tolerance * 16.0 * static_cast<double>(s.tokens);
    compare(expected, "entropy", statistics.entropy, of_rows);
    compare(expected, "entropy_row_mean", statistics.entropy_row_mean, of_rows);
    compare(expected, "concentration", statistics.concentration, of_rows);
}

}  // namespace

TEST_CASE("recurrent attention is what numpy finds", "[recurrent][golden]") {
    std::ifstream stream(headscope::test::golden_file("recurrent_numpy.json"));
    const json document = json::parse(stream);
    const auto size = [&](const char* name) { return document.at(name).get<std::int64_t>(); };
    const Sizes sizes{size("heads"), size("key_heads"), size("tokens"), size("key_size"), size("value_size")};
    REQUIRE(document.at("cases").size() == 18);
    for (const json& from : document.at("cases")) {
        INFO(from.at("name").get<std::string>());
        const auto scale = document.at("scale").get<double>();
        // The reference rounds its results to float32 once; the kernels each of some dozen steps a token.
        {
            const Forced forced("reference");
            check(from, sizes, scale, 0x1p-24);
        }
        check(from, sizes, scale, 64.0 * 0x1p-24);
    }
}
