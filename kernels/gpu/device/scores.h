// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From products of a tile to its scores in base 2, by the rule.

#include <cmath>

#include "kernels/gpu/device/rule.h"
#include "kernels/gpu/device/weight.h"

namespace headscope::gpu {

/// Products of a tile beside q.k: none, those of pairs beyond ScoreRule::far_distance, or of the squares.
enum class Second : std::uint8_t { none, far, squares };

/// Slices of a tile's products.
struct Slices {
    int near, far;  ///< slices of the products and of the second ones
    Second second;

    HS_DEVICE Slices(const HsAttention& a, bool adjusted, int width = kSlice) {
        near = (a.key_size + width - 1) / width;
        second = !adjusted                                            ? Second::none
                 : a.rule.far_distance >= 0                           ? Second::far
                 : is_diagonal(static_cast<Normaliser>(a.normaliser)) ? Second::squares
                                                                      : Second::none;
        far = second == Second::none ? 0 : second == Second::far ? (a.rule.near_begin + width - 1) / width : near;
    }
    HS_DEVICE int count() const { return near + far; }
};

/// Loads part `part` < slices.count() of the products of queries from `first` with keys from `key`.
HS_DEVICE void load_part(const Context& c, const HsAttention& a, const Slices& slices, Shared<float> slot, int head,
                         int key, int first, int part) {
    const bool far = part >= slices.near;
    const int size = far && slices.second == Second::far ? a.rule.near_begin : a.key_size;
    load_slices(c, slot, rows_of(a.key, a.key_size, head / (a.heads / a.key_heads)), key, a.rule.key_begin,
                a.rule.key_end, rows_of(a.query, a.key_size, head), first, a.queries, far ? part - slices.near : part,
                size);
}

/// t = s log2(e) of products s; u: the second ones, which become second orders if they are squares. Masked pairs get
/// kMasked. `full`: all pairs are allowed.
template <bool kAdjusted, class Grid = FmaGrid>
HS_DEVICE void finish_scores(const Context& c, const HsAttention& a, const BlockRows& rows, Second second, int head,
                             int key, bool full, float (&s)[Grid::kRows][Grid::kColumns],
                             float (&u)[Grid::kRows][Grid::kColumns]) {
    const int thread = c.thread();
    const float factor = a.rule.query_factor;
#pragma unroll
    for (int r = 0; r < Grid::kRows; ++r) {
        const int row = Grid::row(thread, r);
        const int i = least(rows.first() + row, a.queries - 1), position = i + a.rule.query_offset;
        float last = 0.0f;
        if (kAdjusted && second == Second::far)
            last = load_element(a.query.data, a.query.type,
                                head * static_cast<long long>(a.query.head_stride) +
                                    i * static_cast<long long>(a.query.row_stride) + a.key_size - 1);
#pragma unroll
        for (int n = 0; n < Grid::kColumns; ++n) {
            const int j = key + Grid::column(thread, n);
            float t = s[r][n];
            if (kAdjusted) {
                if (second == Second::far && position - j > a.rule.far_distance) t = u[r][n] + last;
                t *= factor;
                if (second == Second::squares) u[r][n] *= factor * factor * kSecondOrder;
                if (a.rule.relative != nullptr)
                    t += a.rule.relative[static_cast<long long>(head) * a.rule.relative_length + j - position +
                                         a.rule.relative_zero];
                if (a.rule.soft_cap > 0.0f) t = a.rule.soft_cap * tanhf(t / a.rule.soft_cap);
            } else {
                t *= factor;
            }
            s[r][n] = t;
        }
    }
    if (full) return;
#pragma unroll
    for (int r = 0; r < Grid::kRows; ++r)
#pragma unroll
        for (int n = 0; n < Grid::kColumns; ++n)
            if (!rows.allows(Grid::row(thread, r), key + Grid::column(thread, n), head)) s[r][n] = kMasked;
}

/// The bin of kernels/statistics.h's histogram_edges(); -1 for NaN.
HS_DEVICE int bin_of(const double* edges, double s) {
    if (!(s == s)) return -1;
    if (s >= -8.0 && s < 8.0) {
        constexpr int kMiddle = HS_HISTOGRAM_BINS / 2;
        return kMiddle + static_cast<int>(floor(s * 4.0));
    }
    int low = 0, high = HS_HISTOGRAM_BINS;  // edges[low] <= s < edges[high]
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (edges[middle] <= s ? low : high) = middle;
    }
    return low;
}

}  // namespace headscope::gpu
