// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/value_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/backend.h"
#include "kernels/parallel.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRows = 128, kKeys = 512;  ///< cells that are computed at once

/// Calls `use` for the blocks of `cells` in which some pair is allowed.
template <class Use>
void for_blocks(const PairMap& map, const Cells& cells, const std::atomic<bool>& cancel, const Use& use) {
    for (std::int64_t q = cells.q_begin; q < cells.q_end; q += kRows) {
        const std::int64_t q_end = std::min(q + kRows, cells.q_end);
        const auto [seen_begin, seen_end] = map.seen(q, q_end);
        const std::int64_t end = std::min(seen_end, cells.k_end);
        for (std::int64_t k = std::max(seen_begin, cells.k_begin); k < end; k += kKeys) {
            kernels::check_cancelled(&cancel);
            use(Cells{q, q_end, k, std::min(k + kKeys, end)});
        }
    }
}

}  // namespace

std::vector<float> ValueMap::values(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()));
    weights_into(cells, out.data());
    for (std::int64_t i = 0; i < cells.queries(); ++i) {
        float* row = out.data() + i * cells.keys();
        std::int64_t next = cells.k_begin;
        for (const auto& [begin, end] : allowed(cells.q_begin + i)) {
            for (; next < std::min(begin, cells.k_end); ++next) row[next - cells.k_begin] = kNone;
            next = std::max(next, end);
        }
        for (; next < cells.k_end; ++next) row[next - cells.k_begin] = kNone;
    }
    return out;
}

std::vector<float> ValueMap::scores(const Cells& cells) const {
    return std::vector<float>(static_cast<std::size_t>(cells.queries() * cells.keys()), kNone);
}

void ValueMap::scores_into(const Cells& cells, float* out) const {
    std::fill_n(out, cells.queries() * cells.keys(), -std::numeric_limits<float>::infinity());
}

std::vector<PairReading> ValueMap::read(const Cells& cells) const {
    std::vector<PairReading> all;
    for (const float value : values(cells)) {
        PairReading& pair = all.emplace_back();
        if (std::isnan(value)) continue;
        pair.weight = value;
        pair.sequences = 1;
    }
    return all;
}

RegionMass ValueMap::mass(const Cells& cells, const std::atomic<bool>& cancel) const {
    kernels::set_team(kernels::Team::alone);
    RegionMass all;
    all.cells = cells.queries() * cells.keys();
    for (std::int64_t q = cells.q_begin; q < cells.q_end; ++q) all.queries += allowed(q).empty() ? 0 : 1;
    for_blocks(*this, cells, cancel, [&](const Cells& block) {
        for (const float value : values(block)) {
            if (std::isnan(value)) continue;
            ++all.allowed;
            all.mass += static_cast<double>(value);
        }
    });
    all.share = all.queries > 0 ? all.mass / static_cast<double>(all.queries) : 0;
    return all;
}

}  // namespace headscope::maps
