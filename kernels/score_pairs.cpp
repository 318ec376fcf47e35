// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/score_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/backend.h"
#include "kernels/key_ranges.h"

namespace headscope::kernels {

SequenceBounds sequence_bounds(const ScoreRule& rule, std::int64_t b, std::int64_t queries, std::int64_t keys) {
    const auto at = static_cast<std::size_t>(b);
    SequenceBounds bounds{queries, 0, keys};
    if (!rule.query_length.empty()) bounds.queries = rule.query_length[at];
    if (!rule.key_begin.empty()) bounds.key_begin = rule.key_begin[at];
    if (!rule.key_length.empty()) bounds.key_end = rule.key_length[at];
    return bounds;
}

KeyRange key_range(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i) {
    if (i >= bounds.queries) return {0, 0};
    const std::int64_t position = i + rule.query_offset;
    KeyRange range{bounds.key_begin, bounds.key_end};
    if (rule.causal) range.end = std::min(range.end, position + 1);
    if (rule.window_right >= 0) range.end = std::min(range.end, position + rule.window_right + 1);
    if (rule.window_left >= 0) {
        const std::int64_t window = std::max(range.begin, window_begin(rule, position));
        const bool first_visible = range.begin < std::min(rule.first_keys, range.end);
        if (!first_visible)
            range.begin = window;
        else if (window >= range.end)
            range.end = std::min(rule.first_keys, range.end);
    }
    return range.begin < range.end ? range : KeyRange{0, 0};
}

namespace {

std::int64_t block_of(std::int64_t position, std::int64_t size) {
    return position >= 0 ? position / size : -((size - 1 - position) / size);
}

}  // namespace

bool block_visible(const ScoreRule& rule, std::int64_t b, std::int64_t h, std::int64_t heads, std::int64_t i,
                   std::int64_t block) {
    const BlockVisibility& blocks = rule.blocks;
    if (block == block_of(i + rule.query_offset, blocks.block_size)) return blocks.own;
    return blocks.visible[static_cast<std::size_t>((b * heads + h) * blocks.blocks + block)] != 0;
}

bool allowed(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t b, std::int64_t h, std::int64_t heads,
             std::int64_t i, std::int64_t j) {
    if (i >= bounds.queries || j < bounds.key_begin || j >= bounds.key_end) return false;
    const std::int64_t position = i + rule.query_offset;
    if (rule.causal && j > position) return false;
    if (rule.window_left >= 0 && j < window_begin(rule, position) && j >= rule.first_keys) return false;
    if (rule.window_right >= 0 && j - position > rule.window_right) return false;
    return rule.blocks.block_size == 0 || block_visible(rule, b, h, heads, i, j / rule.blocks.block_size);
}

std::int64_t visible_keys(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i) {
    std::int64_t count = 0;
    for_key_ranges(rule, bounds, 0, 0, 1, i,
                   [&](std::int64_t begin, std::int64_t end) { count += std::max<std::int64_t>(end - begin, 0); });
    return count;
}

double offset_factor(const ScoreRule& rule, const SequenceBounds& bounds, std::int64_t i) {
    const std::int64_t keys = visible_keys(rule, bounds, i);
    if (keys == 0) return 0.0;
    return rule.offset_form == OffsetForm::per_length ? 1.0 / static_cast<double>(keys) : 1.0;
}

const std::array<double, kHistogramBins + 1>& histogram_edges() {
    static const auto edges = [] {
        std::array<double, kHistogramBins + 1> e{};
        constexpr int steps = 50;   // sixteenths of a decade on each side
        constexpr int linear = 64;  // quarters from -8 to 8
        e.front() = -std::numeric_limits<double>::infinity();
        e.back() = std::numeric_limits<double>::infinity();
        for (int k = 0; k <= steps; ++k) {
            const double edge = 8.0 * std::pow(10.0, k / 16.0);
            e[static_cast<std::size_t>(1 + steps - k)] = -edge;
            e[static_cast<std::size_t>(1 + steps + linear + k)] = edge;
        }
        for (int k = 1; k < linear; ++k) e[static_cast<std::size_t>(1 + steps + k)] = -8.0 + 0.25 * k;
        return e;
    }();
    return edges;
}

int histogram_bin(double s) {
    if (std::isnan(s)) return -1;
    const auto& edges = histogram_edges();
    const auto above = std::upper_bound(edges.begin(), edges.end(), s);
    return std::min(static_cast<int>(above - edges.begin()) - 1, kHistogramBins - 1);
}

std::int64_t histogram_step(std::int64_t requested, std::int64_t queries) {
    if (requested > 0) return requested;
    return queries <= 1024 ? 1 : 8;
}

namespace {

/// T5's bucket of a key at `relative` = key position - query position; the logarithm in float32, as its authors take
/// it.
std::int64_t t5_bucket(std::int64_t relative, std::int64_t buckets, std::int64_t max_distance, bool bidirectional) {
    std::int64_t bucket = 0;
    if (bidirectional) {
        buckets /= 2;
        if (relative > 0) bucket = buckets;
        relative = std::abs(relative);
    } else {
        relative = std::max<std::int64_t>(-relative, 0);
    }
    const std::int64_t exact = buckets / 2;
    if (relative < exact) return bucket + relative;
    const float ratio = std::log(static_cast<float>(relative) / static_cast<float>(exact)) /
                        static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
    const auto large = exact + static_cast<std::int64_t>(ratio * static_cast<float>(buckets - exact));
    return bucket + std::min(large, buckets - 1);
}

}  // namespace

// At max_distance and beyond the bucket is the last one, so a clamped table of that reach holds for every length.
std::vector<std::int64_t> bucket_columns(std::int64_t buckets, std::int64_t max_distance, bool bidirectional) {
    std::vector<std::int64_t> columns;
    for (std::int64_t relative = -max_distance; relative <= (bidirectional ? max_distance : 0); ++relative)
        columns.push_back(t5_bucket(relative, buckets, max_distance, bidirectional));
    return columns;
}

void set_bucketed_bias(ScoreRule& rule, std::span<const float> table, std::int64_t buckets, std::int64_t heads,
                       std::int64_t max_distance, bool bidirectional, std::int64_t /*queries*/, std::int64_t /*keys*/) {
    const std::string where = "bucketed bias";
    const std::int64_t one_side = bidirectional ? buckets / 2 : buckets;
    if (heads < 1 || one_side < 2) {
        throw Error(where, "at least one head and two buckets a side",
                    std::to_string(heads) + " heads, " + std::to_string(one_side) + " buckets");
    }
    if (max_distance <= one_side / 2 || max_distance > (1 << 24)) {
        throw Error(
            where, "a maximum distance above " + std::to_string(one_side / 2) + " (the exact buckets) and at most 2^24",
            std::to_string(max_distance));
    }
    if (static_cast<std::int64_t>(table.size()) != buckets * heads) {
        throw Error(where, std::to_string(buckets * heads) + " values [buckets, heads]", std::to_string(table.size()));
    }
    const std::vector<std::int64_t> columns = bucket_columns(buckets, max_distance, bidirectional);
    rule.bias_origin = max_distance;
    rule.bias_length = static_cast<std::int64_t>(columns.size());
    rule.beyond_table = BeyondTable::clamp;
    rule.distance_bias.clear();
    rule.distance_bias.reserve(static_cast<std::size_t>(heads) * columns.size());
    for (std::int64_t h = 0; h < heads; ++h) {
        for (const std::int64_t bucket : columns)
            rule.distance_bias.push_back(table[static_cast<std::size_t>(bucket * heads + h)]);
    }
}

}  // namespace headscope::kernels
