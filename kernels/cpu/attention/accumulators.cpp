// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/attention/accumulators.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cpu/attention/sequence.h"

namespace headscope::kernels::cpu {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

void raise(std::atomic_ref<float> maximum, float x) {
    float seen = maximum.load(std::memory_order_relaxed);
    while (seen < x && !maximum.compare_exchange_weak(seen, x, std::memory_order_relaxed)) {
    }
}

}  // namespace

ColumnTotals::ColumnTotals(std::int64_t heads, std::int64_t query_end, std::int64_t key_begin, std::int64_t key_end,
                           std::int64_t thumbnail_rows, std::int64_t thumbnail_columns, bool bounded)
    : query_end_(query_end),
      key_begin_(key_begin),
      key_end_(key_end),
      thumbnail_rows_(thumbnail_rows),
      thumbnail_columns_(thumbnail_columns) {
    // Weights are at most 1 (and a little, by rounding), so no column's and no cell's sum reaches 2^62.
    const std::int64_t keys = key_end - key_begin;
    const std::int64_t in_cell = thumbnail_rows > 0 && thumbnail_columns > 0
                                     ? divide_up(query_end, thumbnail_rows) * divide_up(keys, thumbnail_columns)
                                     : 0;
    const auto terms = static_cast<std::uint64_t>(std::max<std::int64_t>({query_end, in_cell, 1}));
    const int bits = static_cast<int>(std::bit_width(terms));
    scale_ = std::ldexp(1.0, bounded ? 61 - bits : 41 - bits);
    limit_ = std::ldexp(1.0, bounded ? 62 : 62 - bits);
    sums_.assign(static_cast<std::size_t>(heads * (key_end - key_begin)), 0);
    cell_sums_.assign(static_cast<std::size_t>(heads * thumbnail_rows * thumbnail_columns), 0);
    cell_maxima_.assign(cell_sums_.size(), 0.0F);
    broken_.assign(static_cast<std::size_t>(heads), 0);
    for (std::int64_t c = 0; c <= thumbnail_columns && thumbnail_columns > 0; ++c) {
        first_key_.push_back(key_begin + divide_up(c * (key_end - key_begin), thumbnail_columns));
    }
}

std::int64_t ColumnTotals::cell_row(std::int64_t i) const {
    return thumbnail_rows_ > 0 && i < query_end_ ? i * thumbnail_rows_ / query_end_ : 0;
}

std::int64_t ColumnTotals::first_query(std::int64_t cell_row) const {
    return thumbnail_rows_ > 0 ? divide_up(cell_row * query_end_, thumbnail_rows_) : (cell_row > 0 ? query_end_ : 0);
}

std::int64_t ColumnTotals::fixed(double x, std::int64_t h) {
    const double scaled = x * scale_;
    // Truncation, not rounding: one instruction, and less than 2^-40 of a weight either way.
    if (std::abs(scaled) < limit_) return static_cast<std::int64_t>(scaled);
    const std::lock_guard lock(broken_mutex_);
    broken_[static_cast<std::size_t>(h)] = 1;
    return 0;
}

double ColumnTotals::from_fixed(std::int64_t sum, std::int64_t h) const {
    if (broken_[static_cast<std::size_t>(h)] != 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(sum) / scale_;
}

void ColumnTotals::add(std::int64_t h, std::int64_t cell_row, std::int64_t key, std::int64_t count, const float* sums,
                       const float* maxima) {
    const std::int64_t begin = std::max(key, key_begin_), end = std::min(key + count, key_end_);
    if (begin >= end) return;
    const auto stripe =
        static_cast<std::size_t>((h * 7 + key / kTileKeys) % static_cast<std::int64_t>(stripes_.size()));
    const std::lock_guard lock(stripes_[stripe]);
    std::int64_t* column = sums_.data() + h * (key_end_ - key_begin_) - key_begin_;
    if (thumbnail_columns_ == 0) {
        for (std::int64_t j = begin; j < end; ++j) column[j] += fixed(double{sums[j - key]}, h);
        return;
    }
    std::int64_t c = (begin - key_begin_) * thumbnail_columns_ / (key_end_ - key_begin_);
    for (std::int64_t j = begin; j < end; ++c) {
        const std::int64_t stop = std::min(first_key_[static_cast<std::size_t>(c) + 1], end);
        std::int64_t sum = 0;
        float maximum = 0.0F;
        for (; j < stop; ++j) {
            const std::int64_t x = fixed(double{sums[j - key]}, h);
            column[j] += x;
            sum += x;
            maximum = std::max(maximum, maxima[j - key]);
        }
        const auto at = static_cast<std::size_t>(cell(h, cell_row, c));
        if (inside_tile(c)) {
            cell_sums_[at] += sum;
            cell_maxima_[at] = std::max(cell_maxima_[at], maximum);
        } else {
            // The neighbouring tile's lock is another one.
            std::atomic_ref(cell_sums_[at]).fetch_add(sum, std::memory_order_relaxed);
            raise(std::atomic_ref(cell_maxima_[at]), maximum);
        }
    }
}

void ColumnTotals::set(std::vector<std::int64_t> sums, std::vector<std::int64_t> cell_sums,
                       std::vector<float> cell_maxima, std::vector<std::uint8_t> broken) {
    sums_ = std::move(sums);
    cell_sums_ = std::move(cell_sums);
    cell_maxima_ = std::move(cell_maxima);
    broken_ = std::move(broken);
}

bool ColumnTotals::inside_tile(std::int64_t column) const {
    const std::int64_t first = first_key_[static_cast<std::size_t>(column)];
    const std::int64_t last = first_key_[static_cast<std::size_t>(column) + 1] - 1;
    return first / kTileKeys == last / kTileKeys;
}

double ColumnTotals::column_sum(std::int64_t h, std::int64_t j) const {
    if (j < key_begin_ || j >= key_end_) return 0.0;
    return from_fixed(sums_[static_cast<std::size_t>(h * (key_end_ - key_begin_) + j - key_begin_)], h);
}

double ColumnTotals::cell_mean(std::int64_t h, std::int64_t row, std::int64_t column) const {
    const std::int64_t rows = first_query(row + 1) - first_query(row);
    const std::int64_t columns =
        first_key_[static_cast<std::size_t>(column) + 1] - first_key_[static_cast<std::size_t>(column)];
    if (rows <= 0 || columns <= 0) return 0.0;
    return from_fixed(cell_sums_[static_cast<std::size_t>(cell(h, row, column))], h) /
           static_cast<double>(rows * columns);
}

float ColumnTotals::cell_maximum(std::int64_t h, std::int64_t row, std::int64_t column) const {
    if (broken_[static_cast<std::size_t>(h)] != 0) return std::numeric_limits<float>::quiet_NaN();
    return cell_maxima_[static_cast<std::size_t>(cell(h, row, column))];
}

}  // namespace headscope::kernels::cpu
