// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/maps/rank_source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "kernels/backend.h"

namespace headscope::maps {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kKeys = 2048;  ///< that are computed at once
constexpr std::int64_t kSampled = 8;

/// The bits of floats >= 0 rise with their value and are below 2^31: three passes of eleven bits.
void sort_weights(std::vector<std::uint32_t>& bits, std::vector<std::uint32_t>& other) {
    constexpr int kBits = 11, kPasses = 3;
    std::array<std::array<std::uint32_t, 1 << kBits>, kPasses> counts{};
    for (const std::uint32_t b : bits)
        for (int pass = 0; pass < kPasses; ++pass)
            ++counts[static_cast<std::size_t>(pass)][b >> (kBits * pass) & ((1U << kBits) - 1)];
    other.resize(bits.size());
    for (int pass = 0; pass < kPasses; ++pass) {
        auto& places = counts[static_cast<std::size_t>(pass)];
        std::uint32_t next = 0;
        for (std::uint32_t& place : places) next += std::exchange(place, next);
        for (const std::uint32_t b : bits) other[places[b >> (kBits * pass) & ((1U << kBits) - 1)]++] = b;
        bits.swap(other);
    }
}

}  // namespace

RankSource::RankSource(std::shared_ptr<const PairMap> map)
    : map_(std::move(map)),
      blocks_(std::make_unique<Block[]>(static_cast<std::size_t>((map_->queries() + kRows - 1) / kRows))) {}

float RankSource::Row::rank(float weight) const {
    const std::size_t size = knots.size();
    if (size <= 1) return 1.0F;
    // How many knots are smaller, without branches: this is done for every pair of the map.
    const float* at = knots.data();
    for (std::size_t left = size; left > 1;) {
        const std::size_t half = left / 2;
        at += at[half - 1] < weight ? half : 0;
        left -= half;
    }
    const auto below = static_cast<std::size_t>(at - knots.data()) + (*at < weight ? 1 : 0);
    const auto steps = static_cast<float>(size - 1);
    if (below == size) return 1.0F;
    if (knots[below] == weight) {
        std::size_t end = below + 1;
        while (end < size && knots[end] == weight) ++end;
        return static_cast<float>(below + end - 1) / 2 / steps;
    }
    if (below == 0) return 0.0F;
    const float low = knots[below - 1], high = knots[below];
    return (static_cast<float>(below - 1) + (weight - low) / (high - low)) / steps;
}

const RankSource::Block& RankSource::block(std::int64_t index, const std::atomic<bool>& cancel) const {
    Block& block = blocks_[static_cast<std::size_t>(index)];
    const std::lock_guard lock(block.mutex);
    if (!block.made) make(block, index * kRows, cancel);
    return block;
}

void RankSource::make(Block& block, std::int64_t q_begin, const std::atomic<bool>& cancel) const {
    const std::int64_t q_end = std::min(q_begin + kRows, queries());
    const auto [begin, end] = map_->seen(q_begin, q_end);
    const std::int64_t width = end - begin;
    std::vector<float> weights(static_cast<std::size_t>((q_end - q_begin) * width)), part;
    for (std::int64_t k = begin; k < end; k += kKeys) {
        kernels::check_cancelled(&cancel);
        const std::int64_t size = std::min(kKeys, end - k);
        part.resize(static_cast<std::size_t>((q_end - q_begin) * size));
        map_->weights_into({q_begin, q_end, k, k + size}, part.data());
        for (std::int64_t i = 0; i < q_end - q_begin; ++i)
            std::copy_n(part.begin() + i * size, size, weights.begin() + i * width + (k - begin));
    }
    std::vector<std::uint32_t> bits, other;
    for (std::int64_t q = q_begin; q < q_end; ++q) {
        kernels::check_cancelled(&cancel);
        bits.clear();
        const float* row = weights.data() + (q - q_begin) * width;
        for (const auto& [first, last] : map_->allowed(q)) {
            for (std::int64_t k = first - begin; k < last - begin; ++k)
                if (row[k] >= 0) bits.push_back(std::bit_cast<std::uint32_t>(row[k] + 0.0F));
        }
        sort_weights(bits, other);
        const std::int64_t size = std::ssize(bits), knots = std::min(size, kKnots);
        auto& table = block.rows[static_cast<std::size_t>(q - q_begin)].knots;
        table.resize(static_cast<std::size_t>(knots));
        for (std::int64_t i = 0; i < knots; ++i) {
            const std::int64_t from = knots > 1 ? (i * (size - 1) + (knots - 1) / 2) / (knots - 1) : 0;
            table[static_cast<std::size_t>(i)] = std::bit_cast<float>(bits[static_cast<std::size_t>(from)]);
        }
    }
    block.made = true;
}

void RankSource::pool(const Cells& cells, int level, std::int64_t stride, float* mean, float* extreme,
                      const std::atomic<bool>& cancel) const {
    const std::int64_t rows = pixels(cells.queries(), level), columns = pixels(cells.keys(), level);
    struct Pixel {
        double sum = 0;
        std::int64_t count = 0;
        float most = -1;
    };
    // Looking a rank up is what takes time: a mean is of about kSampled keys of each row under the pixel.
    const std::int64_t step = std::max<std::int64_t>(1, (std::int64_t{1} << level) / kSampled);
    std::vector<Pixel> grid(static_cast<std::size_t>(rows * columns));
    std::vector<float> weights;
    /// Keys [begin, end) of one row, whose key `origin` is row[0].
    const auto add = [&](const Row& table, Pixel* line, const float* row, std::int64_t origin, std::int64_t begin,
                         std::int64_t end) {
        for (std::int64_t k = begin; k < end;) {
            const std::int64_t column = (k - cells.k_begin) >> level;
            const std::int64_t next = std::min(end, cells.k_begin + ((column + 1) << level));
            float largest = -1, sum = 0;
            std::int64_t count = 0;
            for (; k < next; ++k) {
                const float weight = row[k - origin];
                if (!(weight >= 0)) continue;
                largest = std::max(largest, weight);
                if (count > 0 && (k & (step - 1)) != 0) continue;
                sum += table.rank(weight);
                ++count;
            }
            if (largest < 0) continue;
            line[column].sum += static_cast<double>(sum);
            line[column].count += count;
            line[column].most = std::max(line[column].most, table.rank(largest));
        }
    };
    for (std::int64_t q = cells.q_begin; q < cells.q_end;) {
        const std::int64_t q_end = std::min(cells.q_end, (q / kRows + 1) * kRows);
        const Block& tables = block(q / kRows, cancel);
        const auto [seen_begin, seen_end] = map_->seen(q, q_end);
        const std::int64_t end = std::min(seen_end, cells.k_end);
        for (std::int64_t k = std::max(seen_begin, cells.k_begin); k < end; k += kKeys) {
            kernels::check_cancelled(&cancel);
            const std::int64_t size = std::min(kKeys, end - k);
            weights.resize(static_cast<std::size_t>((q_end - q) * size));
            map_->weights_into({q, q_end, k, k + size}, weights.data());
            for (std::int64_t i = q; i < q_end; ++i) {
                Pixel* line = grid.data() + ((i - cells.q_begin) >> level) * columns;
                const Row& table = tables.rows[static_cast<std::size_t>(i % kRows)];
                for (const auto& [first, last] : map_->allowed(i))
                    add(table, line, weights.data() + (i - q) * size, k, std::max(first, k), std::min(last, k + size));
            }
        }
        q = q_end;
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

std::vector<float> RankSource::values(const Cells& cells) const {
    std::vector<float> ranks = map_->values(cells);
    const std::atomic<bool> go_on{false};
    for (std::int64_t i = 0; i < cells.queries(); ++i) {
        const std::int64_t q = cells.q_begin + i;
        const Row& table = block(q / kRows, go_on).rows[static_cast<std::size_t>(q % kRows)];
        for (std::int64_t j = 0; j < cells.keys(); ++j) {
            float& value = ranks[static_cast<std::size_t>(i * cells.keys() + j)];
            if (value >= 0) value = table.rank(value);
        }
    }
    return ranks;
}

std::vector<float> row_ranks(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
    std::vector<float> ranks(values.size(), kNone);
    std::vector<float> sorted;
    for (std::int64_t r = 0; r < rows; ++r) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(r * columns);
        sorted.clear();
        std::copy_if(first, first + static_cast<std::ptrdiff_t>(columns), std::back_inserter(sorted),
                     [](float value) { return !std::isnan(value); });
        std::sort(sorted.begin(), sorted.end());
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<std::size_t>(r * columns + c);
            if (std::isnan(values[at])) continue;
            const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), values[at]);
            const double less = static_cast<double>(low - sorted.begin());
            const double equal = static_cast<double>(high - low) - 1;
            const double others = static_cast<double>(sorted.size()) - 1;
            ranks[at] = others > 0 ? static_cast<float>((less + equal / 2) / others) : 1.0F;
        }
    }
    return ranks;
}

}  // namespace headscope::maps
