// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/logit_source.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/backend.h"

namespace headscope::maps {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRows = 128, kKeys = 512;  ///< cells that are computed at once

/// Sums of rows of up to kKeys cells, key by key. Loops over all kKeys so that the compiler can vectorize; the rest of
/// a short row is -inf.
struct Columns {
    std::array<float, kKeys> sum, count, high, low;

    void clear() {
        sum.fill(0);
        count.fill(0);
        high.fill(-kInfinity);
        low.fill(kInfinity);
    }
    void add(const float* row) {
        for (std::size_t n = 0; n < kKeys; ++n) {
            const float value = row[n];
            const bool there = value > -kInfinity;
            sum[n] += there ? value : 0.0F;
            count[n] += there ? 1.0F : 0.0F;
            high[n] = value > high[n] ? value : high[n];
            low[n] = there && value < low[n] ? value : low[n];
        }
    }
};

struct Pixel {
    double sum = 0, count = 0;
    float high = -kInfinity, low = kInfinity;
};

}  // namespace

void LogitSource::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                       const std::atomic<bool>& cancel) const {
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    std::vector<Pixel> grid(static_cast<std::size_t>(rows * columns));
    std::vector<float> scores, padded(kKeys);
    Columns over;
    const auto gather = [&](std::int64_t r, std::int64_t k, std::int64_t size) {
        for (std::int64_t n = 0; n < size; ++n) {
            Pixel& pixel = grid[static_cast<std::size_t>(r * columns + ((k + n - cells.k_begin) >> level))];
            const auto i = static_cast<std::size_t>(n);
            pixel.sum += static_cast<double>(over.sum[i]);
            pixel.count += static_cast<double>(over.count[i]);
            pixel.high = std::max(pixel.high, over.high[i]);
            pixel.low = std::min(pixel.low, over.low[i]);
        }
    };
    const auto add = [&](std::int64_t q_begin, std::int64_t q_end, std::int64_t k, std::int64_t size) {
        scores.resize(static_cast<std::size_t>((q_end - q_begin) * size));
        map_->scores_into({q_begin, q_end, k, k + size}, scores.data());
        for (std::int64_t q = q_begin; q < q_end;) {
            const std::int64_t r = (q - cells.q_begin) >> level;
            const std::int64_t next = std::min(q_end, cells.q_begin + ((r + 1) << level));
            over.clear();
            for (; q < next; ++q) {
                const float* row = scores.data() + (q - q_begin) * size;
                if (size < kKeys) {
                    std::fill(std::copy_n(row, size, padded.begin()), padded.end(), -kInfinity);
                    row = padded.data();
                }
                over.add(row);
            }
            gather(r, k, size);
        }
    };
    for (std::int64_t q = cells.q_begin; q < cells.q_end; q += kRows) {
        const std::int64_t q_end = std::min(q + kRows, cells.q_end);
        const auto [seen_begin, seen_end] = map_->seen(q, q_end);
        const std::int64_t end = std::min(seen_end, cells.k_end);
        for (std::int64_t k = std::max(seen_begin, cells.k_begin); k < end; k += kKeys) {
            kernels::check_cancelled(&cancel);
            add(q, q_end, k, std::min(kKeys, end - k));
        }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            const Pixel& pixel = grid[static_cast<std::size_t>(r * columns + c)];
            const bool none = pixel.count == 0;
            mean[r * stride + c] = none ? kNone : static_cast<float>(pixel.sum / pixel.count);
            extreme[r * stride + c] = none ? kNone : (pixel.high >= -pixel.low ? pixel.high : pixel.low);
        }
    }
}

}  // namespace headscope::maps
