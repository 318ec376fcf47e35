// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/kernels/golden_case.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/normaliser.h"
#include "tests/oracle/golden.h"

namespace headscope::kernels::testing {
namespace {

using nlohmann::json;

double number(const json& value) {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (value.is_string()) return std::numeric_limits<double>::infinity();
    return value.get<double>();
}

std::vector<double> numbers(const json& values) {
    std::vector<double> out;
    for (const json& value : values) out.push_back(number(value));
    return out;
}

template <typename Value>
std::vector<Value> flat(const json& values) {
    if (!values.is_array()) return {values.get<Value>()};
    std::vector<Value> out;
    for (const json& value : values) {
        const std::vector<Value> inner = flat<Value>(value);
        out.insert(out.end(), inner.begin(), inner.end());
    }
    return out;
}

template <typename Value>
void set(const json& from, const char* name, Value& to) {
    if (from.contains(name)) to = from.at(name).get<Value>();
}

ScoreRule rule_of(const json& from) {
    ScoreRule rule;
    set(from, "scale", rule.scale);
    set(from, "soft_cap", rule.soft_cap);
    set(from, "causal", rule.causal);
    set(from, "query_offset", rule.query_offset);
    set(from, "window_left", rule.window_left);
    set(from, "window_right", rule.window_right);
    set(from, "first_keys", rule.first_keys);
    set(from, "slopes", rule.slopes);
    set(from, "sink_logits", rule.sink_logits);
    set(from, "offsets", rule.offsets);
    if (from.value("offset_form", "per_length") == "constant") rule.offset_form = OffsetForm::constant;
    set(from, "query_length", rule.query_length);
    set(from, "key_begin", rule.key_begin);
    set(from, "key_length", rule.key_length);
    set(from, "bias_origin", rule.bias_origin);
    if (from.contains("distance_bias")) {
        rule.distance_bias = flat<float>(from.at("distance_bias"));
        rule.bias_length = static_cast<std::int64_t>(from.at("distance_bias").at(0).size());
    }
    if (from.value("beyond_table", "clamp") == "zero") rule.beyond_table = BeyondTable::zero;
    rule.normaliser = find_normaliser(from.value("normaliser", "softmax")).value();
    if (from.contains("block_size")) {
        const json& visible = from.at("block_visible");
        rule.blocks.block_size = from.at("block_size").get<std::int64_t>();
        rule.blocks.blocks = static_cast<std::int64_t>(visible.at(0).at(0).size());
        for (const bool seen : flat<bool>(visible)) rule.blocks.visible.push_back(seen ? 1 : 0);
    }
    return rule;
}

StatisticsRequest request_of(const json& from) {
    StatisticsRequest request;
    request.per_query = true;
    set(from, "local_distances", request.local_distances);
    set(from, "thumbnail_size", request.thumbnail_size);
    set(from, "histogram_row_step", request.histogram_row_step);
    set(from, "cross", request.cross);
    if (from.contains("tokens")) request.tokens = flat<std::int32_t>(from.at("tokens"));
    return request;
}

/// Draws [batch, heads, length, size] into storage. The generator's numbers times a small amplitude are exact in both
/// types.
TensorView draw(Generator& source, GoldenCase& to, bool bfloat16, float amplitude, std::array<std::int64_t, 4> shape) {
    const auto [batch, heads, length, size] = shape;
    const auto total = static_cast<std::size_t>(batch * heads * length * size);
    std::vector<std::uint8_t>& bytes = to.storage.emplace_back(total * (bfloat16 ? 2 : 4));
    for (std::size_t n = 0; n < total; ++n) {
        const float value = source.draw() * amplitude;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        const auto upper = static_cast<std::uint16_t>(bits >> 16);
        if (bfloat16)
            std::memcpy(bytes.data() + 2 * n, &upper, 2);
        else
            std::memcpy(bytes.data() + 4 * n, &bits, 4);
    }
    return {bytes.data(),
            bfloat16 ? ElementType::bfloat16 : ElementType::float32,
            batch,
            heads,
            length,
            size,
            heads * length * size,
            length * size,
            size};
}

GoldenCase case_of(const json& from) {
    GoldenCase out;
    const auto size = [&](const char* name) { return from.at(name).get<std::int64_t>(); };
    out.name = from.at("name").get<std::string>();
    out.rule = rule_of(from.at("rule"));
    out.request = request_of(from.value("request", json::object()));
    const bool bfloat16 = from.value("bfloat16", false);
    const auto amplitude = from.value("amplitude", 2.0F);
    out.value_size = size("value_size");
    Generator source(from.at("seed").get<std::uint32_t>(), bfloat16 ? 8 : 24);
    out.storage.reserve(3);
    out.query =
        draw(source, out, bfloat16, amplitude, {size("batch"), size("heads"), size("queries"), size("key_size")});
    out.key = draw(source, out, bfloat16, amplitude, {size("batch"), size("kv_heads"), size("keys"), size("key_size")});
    out.value = draw(source, out, bfloat16, 1.0F, {size("batch"), size("kv_heads"), size("keys"), size("value_size")});
    for (const auto& [name, values] : from.at("expected").items()) {
        if (name != "histogram") {
            out.expected[name] = numbers(values);
            continue;
        }
        std::vector<double>& counts = out.expected[name];
        counts.assign(static_cast<std::size_t>(size("batch") * size("heads") * kHistogramBins), 0.0);
        for (const json& entry : values) counts.at(entry.at(0).get<std::size_t>()) = entry.at(1).get<double>();
    }
    return out;
}

}  // namespace

float Generator::draw() {
    state_ = state_ * 1664525U + 1013904223U;
    return std::ldexp(static_cast<float>(state_ >> (32 - bits_)), 1 - bits_) - 1.0F;
}

GoldenFile load_golden() {
    std::ifstream stream(headscope::test::golden_file("attention_numpy.json"));
    const json document = json::parse(stream);
    GoldenFile file;
    file.edges = numbers(document.at("edges"));
    for (const json& from : document.at("buckets")) {
        GoldenBuckets& buckets = file.buckets.emplace_back();
        set(from, "bidirectional", buckets.bidirectional);
        set(from, "buckets", buckets.buckets);
        set(from, "max_distance", buckets.max_distance);
        set(from, "reach", buckets.reach);
        set(from, "bucket", buckets.bucket);
    }
    for (const json& from : document.at("cases")) file.cases.push_back(case_of(from));
    return file;
}

std::map<std::string, std::vector<double>> fields_of(const Statistics& s) {
    std::map<std::string, std::vector<double>> out;
    const auto add = [&out](const char* name, const auto& values) { out[name].assign(values.begin(), values.end()); };
    add("entropy", s.entropy);
    add("entropy_row_mean", s.entropy_row_mean);
    add("concentration", s.concentration);
    add("sink", s.sink);
    add("local_focus", s.local_focus);
    add("head_diversity", s.head_diversity);
    add("density", s.density);
    add("sparsity", s.sparsity);
    add("zero_fraction", s.zero_fraction);
    add("mean_distance", s.mean_distance);
    add("duplicate", s.duplicate);
    add("induction", s.induction);
    add("virtual_sink", s.virtual_sink);
    add("column_mass", s.column_mass);
    add("histogram", s.histogram);
    add("score_minimum", s.score_minimum);
    add("score_maximum", s.score_maximum);
    add("score_mean", s.score_mean);
    add("score_variance", s.score_variance);
    add("score_above", s.score_above);
    add("thumbnail_mean", s.thumbnail_mean);
    add("thumbnail_maximum", s.thumbnail_maximum);
    add("row_constant", s.row_constant);
    add("query_entropy", s.query_entropy);
    add("query_square_sum", s.query_square_sum);
    add("query_sink", s.query_sink);
    add("query_mean_distance", s.query_mean_distance);
    return out;
}

}  // namespace headscope::kernels::testing
