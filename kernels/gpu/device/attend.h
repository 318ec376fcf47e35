// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The first pass: a block owns 64 queries of one head and walks their keys. O, the rows' constants and all statistics
// that are functions of a row. Sums of a tile are float32, sums across tiles float64.

#include "kernels/gpu/device/attend_end.h"
#include "kernels/gpu/device/dropout.h"

namespace headscope::gpu {

/// O's columns [column, column + kWidth).
template <Pass kPass, int kWidth, bool kStatistics, bool kAdjusted, class Products>
struct AttendBlock : AttendEnd<kPass, kWidth, kStatistics, Products> {
    using Base = AttendEnd<kPass, kWidth, kStatistics, Products>;
    using Base::kColumns;
    using Base::kCounters;
    using Base::kCounts;
    using Base::kLanes;
    using Base::kRanges;
    using Base::kRows;
    using Base::kThreads;
    using typename Base::Args;
    using typename Base::Grid;
    using typename Base::Pairs;
    using typename Base::Row;
    using typename Base::Tile;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.a;
        const int query_blocks = (a.queries + kTile - 1) / kTile;
        const long long index = args.begin + c.block();
        const int head = static_cast<int>(index % a.heads);
        const int first = (query_blocks - 1 - static_cast<int>(index / a.heads)) * kTile;
        const int t = c.thread();
        const auto counters = c.shared<unsigned>(4 * kCounters);
        if (kStatistics) {
            for (int x = t; x < kCounts; x += kThreads) counters[x] = 0U;
            if (kPass != Pass::sums && args.constants != 0 && t < kTile) clear_kept(args, head, first + t);
        }
        if (a.panel != nullptr && kPass == Pass::sums) clear_panel(args, c, first);
        const BlockRows rows(c, a.rule, c.shared<int>(4 * kRanges), first);
        walk(args, c, rows, head, first);
    }

private:
    static HS_DEVICE void clear_kept(const Args& args, int head, int i) {
        if (i >= args.a.queries) return;
        float* kept = Base::kept_of(args, head, i);
        for (int x = 0; x <= args.s.distances; ++x) kept[x] = kPass == Pass::weigh ? 0.0f : kMasked;
    }

    static HS_DEVICE void clear_panel(const Args& args, const Context& c, int first) {
        const int rows = least(kTile, args.a.queries - first);
        float* panel = Base::panel_of(args, c, 0);
        const long long size = static_cast<long long>(rows) * args.a.keys;
        for (long long x = c.thread(); x < size; x += kThreads) panel[x] = kMasked;
    }

    static HS_DEVICE void walk(const Args& args, const Context& c, const BlockRows& rows, int head, int first) {
        const HsAttention& a = args.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        Products products(c, a, kAdjusted);
        const Slices& slices = products.slices;
        const int t = c.thread();
        const auto ring = c.shared<typename Products::Word>(0);
        const bool with_output = kPass != Pass::sums && a.output.data != nullptr;
        const int parts = slices.count() + (with_output ? Products::kRowParts : 0), end = rows.end_key();

        int load_key = rows.any() ? rows.first_tile(head) : end, load_at = 0, slot = 0;
        const auto load_next = [&](int to) {
            if (load_key >= end) return;
            const auto place = ring + to * kSlotFloats;
            if (load_at < slices.count())
                products.load(place, head, load_key, first, load_at);
            else
                products.template load_rows<kWidth>(place, key_tile(a, a.value, a.value_size, head, load_key),
                                                    args.column, load_at - slices.count());
            if (++load_at == parts) {
                load_at = 0;
                load_key = rows.next_tile(load_key + kTile, head);
            }
        };
        const auto advance = [&]() {
            c.wait_copies();
            c.sync();
            load_next(slot ^ 1);
            const auto ready = ring + slot * kSlotFloats;
            slot ^= 1;
            return ready;
        };

        RowConstant constants[kRows];
        if (kPass == Pass::weigh) load_constants(args, rows, head, first, t, constants);
        float o[kRows][kColumns] = {};
        Row maximum, minimum, z;
        double low = 0.0, high = 0.0;  // sums of row t % kRows: values 0 and 1, or 2 and 3
        Pairs pairs;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            maximum[r] = kMasked;
            minimum[r] = kHuge;
            z[r] = 0.0f;
        }
        int key = load_key;
        if (key < end) products.hold_queries(head, first);  // a block without keys waits for no copy
        load_next(0);
        while (key < end) {
            Tile s = {}, u = {};
            products.template multiply<kAdjusted>(advance, s, u);
            const bool full = rows.is_full(key);
            finish_scores<kAdjusted, Grid>(c, a, rows, slices.second, head, key, full, s, u);
            if (kStatistics && kPass != Pass::weigh) Base::measure_scores(args, c, first, s, minimum, pairs);
            if (kPass == Pass::sums && a.panel != nullptr) Base::store_panel(args, c, key, s);
            float v[4][kRows];
            Row shrink, gap;
            if (kPass == Pass::online) {
                if (kStatistics) Base::keep(args, head, first, key, t, s);
                Base::exponentials(c, full, s, maximum, shrink, gap, v);
            } else if (kPass == Pass::sums) {
                Base::raise_maxima(c, s, maximum, shrink, gap);
                Base::taylor_sums(normaliser, s, u, v);
            } else {
                Base::weigh_tile(c, normaliser, full, s, u, constants, v);
                if (kStatistics) Base::keep(args, head, first, key, t, s);
            }
            if (kPass == Pass::sums || kStatistics) {
                float x, y;
                sum_by_halves(c, v, x, y);
                Base::join(c, key, pick(shrink, t % kRows), pick(gap, t % kRows), x, y, low, high);
            } else if (kPass == Pass::online) {
#pragma unroll
                for (int r = 0; r < kRows; ++r) z[r] = z[r] * shrink[r] + v[0][r];
            }
            if (with_output) {
                if (kPass == Pass::online)
#pragma unroll
                    for (int r = 0; r < kRows; ++r)
#pragma unroll
                        for (int n = 0; n < kColumns; ++n) o[r][n] *= shrink[r];
                if (kAdjusted && !kStatistics && a.rule.dropout_threshold != 0U)
#pragma unroll
                    for (int r = 0; r < kRows; ++r)
                        drop_row(
                            a.rule, head, first + Grid::row(t, r), [&](int n) { return key + Grid::column(t, n); },
                            s[r]);
                products.template add_rows<kWidth, false>(advance, s, o);
            }
            key = rows.next_tile(key + kTile, head);
        }
        if (kPass == Pass::online && !kStatistics) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) z[r] = sum_of_lanes<kLanes>(c, z[r]);
        }
        Base::finish(args, c, head, first, maximum, minimum, z, low, high, pairs);
        if (with_output) Base::write_output(args, c, head, first, o);
    }

    static HS_DEVICE void load_constants(const Args& args, const BlockRows& rows, int head, int first, int t,
                                         RowConstant (&constants)[kRows]) {
        const HsAttention& a = args.a;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = first + Grid::row(t, r);
            constants[r] = {0.0f, 0.0f, 0.0f};
            if (i >= a.queries) continue;
            const long long at = static_cast<long long>(head) * a.queries + i;
            constants[r].shift = a.shift[at];
            constants[r].factor = a.factor[at];
            if (a.rule.offsets != nullptr) constants[r].extra = a.rule.offsets[at];
            if (is_per_order(static_cast<Normaliser>(a.normaliser))) {
                const int row = Grid::row(t, r);
                constants[r].extra = 1.0f / static_cast<float>(rows.end(row) - rows.begin(row));
            }
        }
    }
};

template <Pass kPass, int kWidth, bool kStatistics, bool kAdjusted>
struct Attend : AttendBlock<kPass, kWidth, kStatistics, kAdjusted, FmaProducts> {};

/// On tensor cores.
template <Pass kPass, int kWidth, bool kStatistics, bool kAdjusted>
struct AttendMma : AttendBlock<kPass, kWidth, kStatistics, kAdjusted, MmaProducts> {};

}  // namespace headscope::gpu
