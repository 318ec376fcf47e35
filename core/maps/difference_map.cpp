// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/difference_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRows = 128, kKeys = 512;  ///< cells that are computed at once

/// Some of the first map's tokens [begin, end) and the second's [low, high) that hold all their partners.
struct Run {
    std::int64_t begin = 0, end = 0, low = 0, high = 0;
};

/// Cuts [begin, end) where partners lie so far apart that what is between them would be computed for nothing.
std::vector<Run> runs(const std::vector<std::int64_t>& partners, std::int64_t begin, std::int64_t end) {
    std::vector<Run> all;
    const std::int64_t widest = 2 * (end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t partner = partners[static_cast<std::size_t>(i)];
        if (partner < 0) continue;
        const bool fits = !all.empty() && std::max(all.back().high, partner + 1) - std::min(all.back().low, partner) <=
                                              std::max<std::int64_t>(widest, 1);
        if (!fits) {
            all.push_back({i, i + 1, partner, partner + 1});
            continue;
        }
        Run& run = all.back();
        run = {run.begin, i + 1, std::min(run.low, partner), std::max(run.high, partner + 1)};
    }
    return all;
}

void check_partners(const std::vector<std::int64_t>& partners, std::int64_t first, std::int64_t second) {
    const bool inside = std::all_of(partners.begin(), partners.end(),
                                    [second](std::int64_t partner) { return partner >= -1 && partner < second; });
    if (std::ssize(partners) == first && inside) return;
    throw Error(ErrorCode::internal, "difference of maps",
                "expected " + std::to_string(first) + " partners below " + std::to_string(second),
                "found " + std::to_string(partners.size()) + (inside ? "" : ", some beyond"));
}

struct Pixel {
    double sum = 0;
    std::int64_t count = 0;
    float most = 0;
};

}  // namespace

DifferenceMap::DifferenceMap(std::shared_ptr<const TileSource> first, std::shared_ptr<const TileSource> second,
                             std::vector<std::int64_t> query_partners, std::vector<std::int64_t> key_partners)
    : first_(std::move(first)),
      second_(std::move(second)),
      query_partners_(std::move(query_partners)),
      key_partners_(std::move(key_partners)) {
    check_partners(query_partners_, first_->queries(), second_->queries());
    check_partners(key_partners_, first_->keys(), second_->keys());
}

void DifferenceMap::block_into(const Cells& cells, float* out) const {
    const auto key_runs = runs(key_partners_, cells.k_begin, cells.k_end);
    for (const Run& rows : runs(query_partners_, cells.q_begin, cells.q_end)) {
        for (const Run& columns : key_runs) {
            const std::vector<float> first = first_->values({rows.begin, rows.end, columns.begin, columns.end});
            const std::vector<float> second = second_->values({rows.low, rows.high, columns.low, columns.high});
            const std::int64_t wide = columns.end - columns.begin, second_wide = columns.high - columns.low;
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
                const std::int64_t partner = query_partners_[static_cast<std::size_t>(i)];
                if (partner < 0) continue;
                const float* from = first.data() + (i - rows.begin) * wide;
                const float* to = second.data() + (partner - rows.low) * second_wide;
                float* line = out + (i - cells.q_begin) * cells.keys() + (columns.begin - cells.k_begin);
                for (std::int64_t j = 0; j < wide; ++j) {
                    const std::int64_t key = key_partners_[static_cast<std::size_t>(columns.begin + j)];
                    if (key >= 0) line[j] = to[key - columns.low] - from[j];
                }
            }
        }
    }
}

void DifferenceMap::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                         const std::atomic<bool>& cancel) const {
    kernels::set_team(kernels::Team::alone);
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    std::vector<Pixel> grid(static_cast<std::size_t>(rows * columns));
    std::vector<float> block;
    for (std::int64_t q = cells.q_begin; q < cells.q_end; q += kRows) {
        const std::int64_t q_end = std::min(q + kRows, cells.q_end);
        for (std::int64_t k = cells.k_begin; k < cells.k_end; k += kKeys) {
            kernels::check_cancelled(&cancel);
            const std::int64_t k_end = std::min(k + kKeys, cells.k_end);
            block.assign(static_cast<std::size_t>((q_end - q) * (k_end - k)), kNone);
            block_into({q, q_end, k, k_end}, block.data());
            for (std::int64_t i = q; i < q_end; ++i) {
                Pixel* line = grid.data() + ((i - cells.q_begin) >> level) * columns;
                const float* row = block.data() + (i - q) * (k_end - k);
                for (std::int64_t j = k; j < k_end; ++j) {
                    const float value = row[j - k];
                    if (std::isnan(value)) continue;
                    Pixel& pixel = line[(j - cells.k_begin) >> level];
                    pixel.sum += static_cast<double>(value);
                    ++pixel.count;
                    if (std::abs(value) > std::abs(pixel.most)) pixel.most = value;
                }
            }
        }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            const Pixel& pixel = grid[static_cast<std::size_t>(r * columns + c)];
            const bool there = pixel.count > 0;
            mean[r * stride + c] = there ? static_cast<float>(pixel.sum / static_cast<double>(pixel.count)) : kNone;
            extreme[r * stride + c] = there ? pixel.most : kNone;
        }
    }
}

std::vector<float> DifferenceMap::values(const Cells& cells) const {
    std::vector<float> out(static_cast<std::size_t>(cells.queries() * cells.keys()), kNone);
    block_into(cells, out.data());
    return out;
}

}  // namespace headscope::maps
