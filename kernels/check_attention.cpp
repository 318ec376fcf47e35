// SPDX-License-Identifier: GPL-3.0-or-later
// The checks of kernels/score_rule.h: a backend that has passed them may index without looking.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/backend.h"
#include "kernels/normaliser.h"
#include "kernels/score_pairs.h"

namespace headscope::kernels {
namespace {

// Sizes beyond this would overflow products of a few of them; no machine has such tensors.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;

void expect(bool condition, const char* where, const std::string& expected, const std::string& found) {
    if (!condition) throw Error(where, expected, found);
}

std::string shape_of(const TensorView& v) {
    return "[" + std::to_string(v.batch) + ", " + std::to_string(v.heads) + ", " + std::to_string(v.length) + ", " +
           std::to_string(v.size) + "]";
}

void check_view(const TensorView& view, const char* where) {
    const auto inside = [](std::int64_t n) { return n >= 1 && n < kLargestSize; };
    expect(inside(view.batch) && inside(view.heads) && inside(view.length) && inside(view.size), where,
           "[batch, heads, length, size], each at least 1", shape_of(view));
    expect(view.data != nullptr, where, "data", "a null pointer");
    expect(view.type == ElementType::float32 || view.type == ElementType::bfloat16, where, "float32 or bfloat16",
           "element type " + std::to_string(static_cast<int>(view.type)));
}

void check_size(const char* where, std::size_t found, std::int64_t expected, const char* what) {
    expect(found == 0 || found == static_cast<std::size_t>(expected), where,
           std::to_string(expected) + " values " + what + ", or none", std::to_string(found));
}

template <typename Values>
void check_finite(const char* where, const Values& values) {
    for (const auto value : values) expect(std::isfinite(value), where, "finite values", std::to_string(value));
}

void check_lengths(const ScoreRule& rule, std::int64_t batch, std::int64_t queries, std::int64_t keys) {
    check_size("query_length", rule.query_length.size(), batch, "[batch]");
    check_size("key_begin", rule.key_begin.size(), batch, "[batch]");
    check_size("key_length", rule.key_length.size(), batch, "[batch]");
    for (std::int64_t b = 0; b < batch; ++b) {
        const SequenceBounds bounds = sequence_bounds(rule, b, queries, keys);
        expect(bounds.queries >= 0 && bounds.queries <= queries, "query_length", "0 to " + std::to_string(queries),
               std::to_string(bounds.queries));
        expect(bounds.key_end >= 0 && bounds.key_end <= keys, "key_length", "0 to " + std::to_string(keys),
               std::to_string(bounds.key_end));
        expect(bounds.key_begin >= 0 && bounds.key_begin <= bounds.key_end, "key_begin",
               "0 to the key length, " + std::to_string(bounds.key_end), std::to_string(bounds.key_begin));
    }
}

void check_biases(const ScoreRule& rule, std::int64_t heads) {
    check_size("slopes", rule.slopes.size(), heads, "[heads]");
    check_finite("slopes", rule.slopes);
    check_size("sink_logits", rule.sink_logits.size(), heads, "[heads]");
    check_finite("sink_logits", rule.sink_logits);
    check_finite("offsets", rule.offsets);
    const bool offsets = traits_of(rule.normaliser).takes_offsets();
    expect(rule.offsets.size() == (offsets ? static_cast<std::size_t>(heads) : 0), "offsets",
           offsets ? std::to_string(heads) + " values [heads]"
                   : std::string("none beside ") + normaliser_name(rule.normaliser),
           std::to_string(rule.offsets.size()));
    expect(rule.bias_length >= 0 && rule.bias_length < kLargestSize, "distance_bias", "a length of at least 0",
           std::to_string(rule.bias_length));
    expect(rule.bias_origin > -kLargestSize && rule.bias_origin < kLargestSize, "bias_origin",
           "a column near the table", std::to_string(rule.bias_origin));
    expect(rule.distance_bias.size() == static_cast<std::size_t>(heads * rule.bias_length), "distance_bias",
           std::to_string(heads) + " x " + std::to_string(rule.bias_length) + " values [heads, bias_length]",
           std::to_string(rule.distance_bias.size()));
    check_finite("distance_bias", rule.distance_bias);
}

void check_blocks(const BlockVisibility& blocks, std::int64_t batch, std::int64_t heads, std::int64_t keys) {
    expect(blocks.block_size >= 0, "block size", "at least 0", std::to_string(blocks.block_size));
    if (blocks.block_size == 0) return;
    const std::int64_t needed = (keys + blocks.block_size - 1) / blocks.block_size;
    expect(blocks.blocks >= needed && blocks.blocks < kLargestSize, "blocks",
           "at least " + std::to_string(needed) + " blocks for " + std::to_string(keys) + " keys",
           std::to_string(blocks.blocks));
    expect(blocks.visible.size() == static_cast<std::size_t>(batch * heads * blocks.blocks), "block visibility",
           std::to_string(batch * heads * blocks.blocks) + " values [batch, heads, blocks]",
           std::to_string(blocks.visible.size()));
}

void check_normaliser(const ScoreRule& rule) {
    const std::string name = normaliser_name(rule.normaliser);
    expect(is_known(rule.normaliser), "normaliser", normaliser_list(),
           "number " + std::to_string(static_cast<int>(rule.normaliser)));
    if (!traits_of(rule.normaliser).takes_sinks_and_blocks()) {
        expect(rule.sink_logits.empty(), "sink_logits", "none beside " + name, "some");
        expect(rule.blocks.block_size == 0, "block size", "none beside " + name,
               std::to_string(rule.blocks.block_size));
    }
    if (traits_of(rule.normaliser).is_signed()) {
        const bool plain = rule.window_left < 0 && rule.window_right < 0 && rule.slopes.empty() &&
                           rule.bias_length == 0 && rule.soft_cap == 0.0 && rule.far_distance < 0;
        expect(plain, "normaliser", "no window, bias, cap or far distance beside " + name, "some");
    }
}

}  // namespace

void check_attention(const AttentionInput& input, bool with_value) {
    const TensorView &q = input.query, &k = input.key, &v = input.value;
    expect(input.rule != nullptr, "score rule", "a rule", "a null pointer");
    check_view(q, "query");
    check_view(k, "key");
    expect(q.batch == k.batch, "key", "the batch of the query, " + shape_of(q), shape_of(k));
    expect(q.device == k.device && (!with_value || q.device == v.device), "device", "one for all views", "several");
    expect(q.size == k.size, "key", "the size of the query, " + shape_of(q), shape_of(k));
    expect(q.heads % k.heads == 0, "key", "heads that divide the query's, " + shape_of(q), shape_of(k));
    if (with_value) {
        check_view(v, "value");
        expect(v.batch == k.batch && v.heads == k.heads && v.length == k.length, "value",
               "batch, heads and length of the key, " + shape_of(k), shape_of(v));
    }
    const ScoreRule& rule = *input.rule;
    expect(std::isfinite(rule.scale), "scale", "a finite number", std::to_string(rule.scale));
    expect(std::isfinite(rule.soft_cap) && rule.soft_cap >= 0.0, "soft cap", "0 or a positive number",
           std::to_string(rule.soft_cap));
    expect(std::abs(rule.query_offset) < kLargestSize, "query offset", "less than 2^31 either way",
           std::to_string(rule.query_offset));
    expect(std::min(rule.window_left, rule.window_right) >= -1 &&
               std::max(rule.window_left, rule.window_right) < kLargestSize,
           "window", "-1 (no limit) or a length below 2^31 on either side",
           std::to_string(rule.window_left) + ", " + std::to_string(rule.window_right));
    expect(rule.first_keys >= 0 && rule.first_keys < kLargestSize, "first keys", "0 to 2^31 - 1",
           std::to_string(rule.first_keys));
    expect(rule.window_segment >= 1 && rule.window_segment < kLargestSize, "window segment", "1 to 2^31 - 1",
           std::to_string(rule.window_segment));
    expect(rule.far_distance >= -1 && rule.far_distance < kLargestSize, "far distance", "-1 (none) or 0 to 2^31 - 1",
           std::to_string(rule.far_distance));
    expect(rule.far_distance < 0 || (rule.near_begin >= 1 && rule.near_begin < q.size), "near begin",
           "1 to the size of the query less 1", std::to_string(rule.near_begin));
    expect(rule.dropout.share >= 0.0 && rule.dropout.share < 1.0, "attention dropout",
           "a share of at least 0 and below 1", std::to_string(rule.dropout.share));
    check_normaliser(rule);
    check_biases(rule, q.heads);
    check_blocks(rule.blocks, q.batch, q.heads, k.length);
    check_lengths(rule, q.batch, q.length, k.length);
}

void check_statistics(const AttentionInput& input, const StatisticsRequest& request) {
    const std::int64_t batch = input.query.batch, keys = input.key.length;
    for (const std::int64_t distance : request.local_distances) {
        expect(distance >= 0 && distance < kLargestSize, "local distances", "0 or more", std::to_string(distance));
    }
    expect(request.histogram_row_step >= 0, "histogram row step", "0 (default) or more",
           std::to_string(request.histogram_row_step));
    expect(!request.thumbnails || request.thumbnail_size >= 1, "thumbnail size", "at least 1",
           std::to_string(request.thumbnail_size));
    expect(!request.cross || !input.rule->causal, "cross", "a rule that is not causal", "a causal one");
    check_size("tokens", request.tokens.size(), request.cross ? 0 : batch * keys,
               request.cross ? "for cross-attention" : "[batch, keys]");
}

}  // namespace headscope::kernels
