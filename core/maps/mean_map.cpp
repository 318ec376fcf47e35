// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/mean_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/error.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// The part of `cells` inside a map; may be empty.
Cells within(const Cells& cells, const TileSource& map) {
    return {cells.q_begin, std::min(cells.q_end, map.queries()), cells.k_begin, std::min(cells.k_end, map.keys())};
}

bool empty(const Cells& cells) {
    return cells.queries() <= 0 || cells.keys() <= 0;
}

/// Mean and sample deviation of numbers that come one by one (Welford 1962: no sum of squares is ever large).
struct Spread {
    double mean = 0, squares = 0;
    std::int64_t count = 0;
    void add(double value) {
        const double before = value - mean;
        mean += before / static_cast<double>(++count);
        squares += before * (value - mean);
    }
    double deviation() const {
        return count > 1 ? std::sqrt(squares / static_cast<double>(count - 1))
                         : std::numeric_limits<double>::quiet_NaN();
    }
};

}  // namespace

MeanMap::MeanMap(std::vector<std::shared_ptr<const PairMap>> maps) : maps_(std::move(maps)) {
    if (maps_.empty()) throw Error(ErrorCode::internal, "mean of maps", "expected one map or more", "found none");
    for (const auto& map : maps_) {
        queries_ = std::max(queries_, map->queries());
        keys_ = std::max(keys_, map->keys());
    }
}

template <class Read>
void MeanMap::mean_into(const Cells& cells, float none, float* out, const Read& read) const {
    const auto size = static_cast<std::size_t>(cells.queries() * cells.keys());
    std::vector<double> sums(size);
    std::vector<std::int32_t> counts(size);
    for (const auto& map : maps_) {
        const Cells part = within(cells, *map);
        if (empty(part)) continue;
        const std::vector<float> values = read(*map, part);
        for (std::int64_t i = 0; i < part.queries(); ++i) {
            const float* row = values.data() + i * part.keys();
            double* sum = sums.data() + i * cells.keys();
            std::int32_t* count = counts.data() + i * cells.keys();
            for (std::int64_t j = 0; j < part.keys(); ++j) {
                const bool there = !std::isnan(row[j]);
                sum[j] += there ? static_cast<double>(row[j]) : 0.0;
                count[j] += there ? 1 : 0;
            }
        }
    }
    for (std::size_t at = 0; at < size; ++at)
        out[at] = counts[at] > 0 ? static_cast<float>(sums[at] / counts[at]) : none;
}

void MeanMap::weights_into(const Cells& cells, float* out) const {
    mean_into(cells, 0, out, [](const PairMap& map, const Cells& part) { return map.values(part); });
}

void MeanMap::scores_into(const Cells& cells, float* out) const {
    mean_into(cells, -std::numeric_limits<float>::infinity(), out,
              [](const PairMap& map, const Cells& part) { return map.scores(part); });
}

std::vector<float> MeanMap::values(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()));
    mean_into(cells, kNone, out.data(), [](const PairMap& map, const Cells& part) { return map.values(part); });
    return out;
}

std::vector<float> MeanMap::scores(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()));
    mean_into(cells, kNone, out.data(), [](const PairMap& map, const Cells& part) { return map.scores(part); });
    return out;
}

std::vector<PairReading> MeanMap::read(const Cells& cells) const {
    const auto size = static_cast<std::size_t>(cells.queries() * cells.keys());
    std::vector<Spread> weights(size), logits(size);
    for (const auto& map : maps_) {
        const Cells part = within(cells, *map);
        if (empty(part)) continue;
        const std::vector<PairReading> own = map->read(part);
        for (std::int64_t i = 0; i < part.queries(); ++i) {
            for (std::int64_t j = 0; j < part.keys(); ++j) {
                const PairReading& one = own[static_cast<std::size_t>(i * part.keys() + j)];
                if (one.sequences == 0) continue;
                const auto at = static_cast<std::size_t>(i * cells.keys() + j);
                weights[at].add(static_cast<double>(one.weight));
                logits[at].add(static_cast<double>(one.logit));
            }
        }
    }
    std::vector<PairReading> all(size);
    for (std::size_t at = 0; at < size; ++at) {
        if (weights[at].count == 0) continue;
        all[at] = {static_cast<float>(weights[at].mean), static_cast<float>(logits[at].mean),
                   static_cast<float>(weights[at].deviation()), static_cast<float>(logits[at].deviation()),
                   weights[at].count};
    }
    return all;
}

RegionMass MeanMap::mass(const Cells& cells, const std::atomic<bool>& cancel) const {
    RegionMass all;
    all.cells = cells.queries() * cells.keys();
    Spread mass, share;
    for (const auto& map : maps_) {
        const Cells part = within(cells, *map);
        if (empty(part)) continue;
        const RegionMass one = map->mass(part, cancel);
        mass.add(one.mass);
        share.add(one.share);
    }
    for (std::int64_t q = cells.q_begin; q < cells.q_end; ++q) {
        const auto ranges = allowed(q);
        all.queries += ranges.empty() ? 0 : 1;
        for (const auto& [first, last] : ranges)
            all.allowed += std::max<std::int64_t>(0, std::min(last, cells.k_end) - std::max(first, cells.k_begin));
    }
    all.sequences = mass.count;
    all.mass = mass.mean;
    all.share = share.mean;
    all.mass_deviation = mass.deviation();
    all.share_deviation = share.deviation();
    return all;
}

float MeanMap::most() const {
    float all = maps_.front()->most();
    for (const auto& map : maps_) all = std::max(all, map->most());
    return all;
}

std::int64_t MeanMap::bytes() const {
    std::int64_t sum = 0;
    for (const auto& map : maps_) sum += map->bytes();
    return sum;
}

std::pair<std::int64_t, std::int64_t> MeanMap::seen(std::int64_t q_begin, std::int64_t q_end) const {
    std::pair<std::int64_t, std::int64_t> all(keys_, 0);
    for (const auto& map : maps_) {
        if (q_begin >= map->queries()) continue;
        const auto [begin, end] = map->seen(q_begin, std::min(q_end, map->queries()));
        if (begin < end) all = {std::min(all.first, begin), std::max(all.second, end)};
    }
    return {std::min(all.first, all.second), all.second};
}

std::vector<std::pair<std::int64_t, std::int64_t>> MeanMap::allowed(std::int64_t query) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const auto& map : maps_) {
        if (query >= map->queries()) continue;
        const auto own = map->allowed(query);
        ranges.insert(ranges.end(), own.begin(), own.end());
    }
    return joined_ranges(std::move(ranges));
}

}  // namespace headscope::maps
