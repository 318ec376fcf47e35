// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/pair_map.h"

#include <algorithm>
#include <cmath>

#include "kernels/backend.h"
#include "kernels/parallel.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRows = 128, kKeys = 512;  ///< cells that are computed at once

struct Pixel {
    double sum = 0;
    std::int64_t allowed = 0;
    float most = 0;
};

}  // namespace

std::vector<std::pair<std::int64_t, std::int64_t>> joined_ranges(
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges) {
    std::vector<std::pair<std::int64_t, std::int64_t>> joined;
    std::sort(ranges.begin(), ranges.end());
    for (const auto& range : ranges) {
        if (!joined.empty() && range.first <= joined.back().second)
            joined.back().second = std::max(joined.back().second, range.second);
        else
            joined.push_back(range);
    }
    return joined;
}

void PairMap::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                   const std::atomic<bool>& cancel) const {
    kernels::set_team(kernels::Team::alone);
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    std::vector<Pixel> grid(static_cast<std::size_t>(rows * columns));
    const auto add = [&](const Cells& block) {
        const std::vector<float> weights = values(block);
        for (std::int64_t i = block.q_begin; i < block.q_end; ++i) {
            Pixel* line = grid.data() + ((i - cells.q_begin) >> level) * columns;
            const float* row = weights.data() + (i - block.q_begin) * block.keys();
            for (std::int64_t j = block.k_begin; j < block.k_end; ++j) {
                const float weight = row[j - block.k_begin];
                if (std::isnan(weight)) continue;
                Pixel& pixel = line[(j - cells.k_begin) >> level];
                pixel.sum += static_cast<double>(weight);
                ++pixel.allowed;
                if (std::abs(weight) > std::abs(pixel.most)) pixel.most = weight;
            }
        }
    };
    for (std::int64_t q = cells.q_begin; q < cells.q_end; q += kRows) {
        const std::int64_t q_end = std::min(q + kRows, cells.q_end);
        const auto [seen_begin, seen_end] = seen(q, q_end);
        const std::int64_t end = std::min(seen_end, cells.k_end);
        for (std::int64_t k = std::max(seen_begin, cells.k_begin); k < end; k += kKeys) {
            kernels::check_cancelled(&cancel);
            add({q, q_end, k, std::min(k + kKeys, end)});
        }
    }
    const std::int64_t side = std::int64_t{1} << level;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            const Pixel& pixel = grid[static_cast<std::size_t>(r * columns + c)];
            // At the map's end a pixel has fewer pairs.
            const std::int64_t pairs =
                std::min(side, cells.queries() - r * side) * std::min(side, cells.keys() - c * side);
            mean[r * stride + c] =
                pixel.allowed > 0 ? static_cast<float>(pixel.sum / static_cast<double>(pairs)) : kNone;
            extreme[r * stride + c] = pixel.allowed > 0 ? pixel.most : kNone;
        }
    }
}

}  // namespace headscope::maps
