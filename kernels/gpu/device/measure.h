// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The second pass: a block owns 64 queries x 64 keys and loops over the heads, so that the spread across heads stays in
// registers. Sums by key and by thumbnail cell are 64-bit fixed point numbers: any order of additions gives the same
// bits.

#include "kernels/gpu/device/products.h"
#include "kernels/gpu/device/reduce.h"

namespace headscope::gpu {

struct MeasureArgs {
    HsAttention a;
    HsStatistics s;
    long long begin;  ///< of the tiles (query block x key block) of this launch
};

template <bool kAdjusted, class Products>
struct MeasureBlock {
    using Args = MeasureArgs;
    using Grid = typename Products::Grid;
    using Tile = float[Grid::kRows][Grid::kColumns];
    static constexpr int kThreads = kTileThreads, kHalf = kTile / 2;
    static constexpr int kWeights = 2 * kSlotFloats, kRanges = kWeights + kTile * kWeightStride;
    static constexpr int kCells = kRanges + BlockRows::kInts;
    static constexpr int kShared = 4 * (kCells + kTile);

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.a;
        const int key_blocks = (a.keys + kTile - 1) / kTile;
        const long long tile = args.begin + c.block();
        const int first = static_cast<int>(tile / key_blocks) * kTile,
                  key = static_cast<int>(tile % key_blocks) * kTile;
        const BlockRows rows(c, a.rule, c.shared<int>(4 * kRanges), first);
        bool any = false;
        for (int h = 0; h < a.heads && !any; ++h) any = rows.sees(key, h);
        if (!any) return;
        const auto cells = c.shared<int>(4 * kCells);
        if (c.thread() < kTile) {
            const long long i = first + c.thread();
            cells[c.thread()] = args.s.thumbnail_rows > 0 && i < a.rule.query_end
                                    ? static_cast<int>(i * args.s.thumbnail_rows / a.rule.query_end)
                                    : 0;
        }
        walk(args, c, rows, first, key, tile);
    }

private:
    static HS_DEVICE void walk(const Args& args, const Context& c, const BlockRows& rows, int first, int key,
                               long long tile) {
        const HsAttention& a = args.a;
        const Products products(c, a, kAdjusted);
        const Slices& slices = products.slices;
        const auto ring = c.shared<typename Products::Word>(0);
        const auto weights = c.shared<float>(4 * kWeights);
        const int t = c.thread(), steps = a.heads * slices.count();
        int step = 0;
        const auto load = [&](int n) {
            if (n < steps)
                products.load(ring + n % 2 * kSlotFloats, n / slices.count(), key, first, n % slices.count());
        };
        const auto advance = [&]() {
            c.wait_copies();
            c.sync();
            load(step + 1);
            return ring + step++ % 2 * kSlotFloats;
        };
        unsigned duplicate = 0U, induction = 0U;
        if (args.s.tokens != nullptr) match_tokens(args, c, first, key, duplicate, induction);
        const bool full = rows.is_full(key);
        Tile mean = {}, deviations = {};
        load(0);
        for (int head = 0; head < a.heads; ++head) {
            Tile s = {}, u = {};
            products.template multiply<kAdjusted>(advance, s, u);
            finish_scores<kAdjusted, Grid>(c, a, rows, slices.second, head, key, full, s, u);
            weigh_tile(args, c, rows, head, first, s, u);
            const float inverse = 1.0f / static_cast<float>(head + 1);
#pragma unroll
            for (int r = 0; r < Grid::kRows; ++r)
#pragma unroll
                for (int n = 0; n < Grid::kColumns; ++n) {
                    const float p = s[r][n], delta = p - mean[r][n];
                    mean[r][n] += delta * inverse;
                    deviations[r][n] += delta * (p - mean[r][n]);
                    weights[Grid::row(t, r) * kWeightStride + Grid::column(t, n)] = p;
                }
            c.sync();
            add_columns(args, c, head, first, key, duplicate, induction);
        }
        if (args.s.diversity == nullptr || a.heads < 2) return;
        const float divisor = 1.0f / static_cast<float>(a.heads - 1);
        double sum = 0.0;
#pragma unroll
        for (int r = 0; r < Grid::kRows; ++r)
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) sum += static_cast<double>(sqrtf(deviations[r][n] * divisor));
        sum = sum_of_block<kThreads>(c, c.shared<double>(0), sum);
        if (c.thread() == 0) args.s.diversity[tile] = sum;
    }

    /// Scores become weights; counts those of allowed pairs below 2^-126.
    static HS_DEVICE void weigh_tile(const Args& args, const Context& c, const BlockRows& rows, int head, int first,
                                     Tile& s, const Tile& u) {
        const HsAttention& a = args.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        unsigned zeros = 0U;
#pragma unroll
        for (int r = 0; r < Grid::kRows; ++r) {
            const int row = Grid::row(c.thread(), r), i = first + row;
            RowConstant constant{0.0f, 0.0f, 0.0f};
            if (i < a.queries) {
                const long long at = static_cast<long long>(head) * a.queries + i;
                constant.shift = a.shift[at];
                constant.factor = a.factor[at];
                if (a.rule.offsets != nullptr) constant.extra = a.rule.offsets[at];
                if (is_per_order(normaliser))
                    constant.extra = 1.0f / static_cast<float>(rows.end(row) - rows.begin(row));
            }
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                float p = 0.0f;
                if (s[r][n] != kMasked) {
                    p = weigh(c, normaliser, s[r][n], u[r][n], constant);
                    if (!(p >= kSmallestNormal)) ++zeros;
                }
                s[r][n] = p;
            }
        }
        if (zeros > 0U) c.add(args.s.zeros + head, zeros);
    }

    /// Bits of this thread's 32 rows: the pair counts for the duplicate or induction score.
    static HS_DEVICE void match_tokens(const Args& args, const Context& c, int first, int key, unsigned& duplicate,
                                       unsigned& induction) {
        const HsRule& rule = args.a.rule;
        const int* tokens = args.s.tokens;
        const int j = key + c.thread() % kTile, from = c.thread() / kTile * kHalf;
        if (j < rule.key_begin || j >= rule.key_end) return;
        const int own = tokens[j];
        const bool has_previous = j > rule.key_begin;
        const int previous = has_previous ? tokens[j - 1] : 0;
        for (int r = 0; r < kHalf; ++r) {
            const int position = first + from + r + rule.query_offset;
            if (position < rule.key_begin || position >= rule.key_end) continue;
            const int token = tokens[position];
            if (j < position && own == token) duplicate |= 1U << r;
            if (j <= position && has_previous && previous == token) induction |= 1U << r;
        }
    }

    static HS_DEVICE unsigned long long fixed(const Args& args, const Context& c, double x, int head) {
        const double scaled = x * args.s.scale;
        if (scaled < args.s.limit && scaled > -args.s.limit)
            return static_cast<unsigned long long>(static_cast<long long>(scaled));
        c.set_flag(args.s.broken + head);
        return 0ULL;
    }

    /// A thread owns half a column of the tile of weights.
    static HS_DEVICE void add_columns(const Args& args, const Context& c, int head, int first, int key,
                                      unsigned duplicate, unsigned induction) {
        const HsAttention& a = args.a;
        const HsRule& rule = a.rule;
        const int column = c.thread() % kTile, from = c.thread() / kTile * kHalf, j = key + column;
        if (j < rule.key_begin || j >= rule.key_end) return;
        const auto weights = c.shared<float>(4 * kWeights);
        const auto cells = c.shared<int>(4 * kCells);
        const int rows = least(kHalf, rule.query_end - first - from), keys = rule.key_end - rule.key_begin;
        const int cell_column =
            static_cast<int>(static_cast<long long>(j - rule.key_begin) * args.s.thumbnail_columns / keys);
        unsigned long long total = 0ULL;
        float sum = 0.0f, maximum = 0.0f, duplicates = 0.0f, inductions = 0.0f;
        for (int r = 0; r < rows; ++r) {
            const float p = weights[(from + r) * kWeightStride + column];
            sum += p;
            maximum = most(p, maximum);
            if ((duplicate >> r & 1U) != 0U) duplicates += p;
            if ((induction >> r & 1U) != 0U) inductions += p;
            const int cell = cells[from + r];
            if (r + 1 < rows && (args.s.thumbnail_rows == 0 || cells[from + r + 1] == cell)) continue;
            const unsigned long long part = fixed(args, c, static_cast<double>(sum), head);
            total += part;
            if (args.s.thumbnail_rows > 0) {
                const long long at =
                    (static_cast<long long>(head) * args.s.thumbnail_rows + cell) * args.s.thumbnail_columns +
                    cell_column;
                c.add(args.s.cells + at, part);
                c.raise(args.s.cell_maxima + at, bits_of(maximum));
            }
            sum = maximum = 0.0f;
        }
        c.add(args.s.columns + static_cast<long long>(head) * keys + (j - rule.key_begin), total);
        if (duplicate != 0U)
            c.add(args.s.token_sums + 2LL * head, fixed(args, c, static_cast<double>(duplicates), head));
        if (induction != 0U)
            c.add(args.s.token_sums + 2LL * head + 1, fixed(args, c, static_cast<double>(inductions), head));
    }
};

template <bool kAdjusted>
struct Measure : MeasureBlock<kAdjusted, FmaProducts> {};

/// On tensor cores.
template <bool kAdjusted>
struct MeasureMma : MeasureBlock<kAdjusted, MmaProducts> {};

}  // namespace headscope::gpu
