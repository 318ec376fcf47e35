// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The first pass: a block owns 64 queries of one head and walks their keys. O, the rows' constants and all statistics
// that are functions of a row. Sums of a tile are float32, sums across tiles float64.

#include "kernels/gpu/device/attend_end.h"
#include "kernels/gpu/device/dropout.h"

namespace headscope::gpu {

/// O's columns [column, column + kWidth).
template <Pass kPass, int kWidth, bool kStatistics, bool kAdjusted>
struct Attend : AttendEnd<kPass, kWidth, kStatistics> {
    using Base = AttendEnd<kPass, kWidth, kStatistics>;
    using Base::kColumns;
    using Base::kCounters;
    using Base::kCounts;
    using Base::kRanges;
    using Base::kThreads;
    using Base::kValueRows;
    using Base::kValueStride;
    using Base::kWeights;
    using typename Base::Args;
    using typename Base::Pairs;

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

    static HS_DEVICE void load_values(const Args& args, const Context& c, Shared<float> slot, int head, int key) {
        const HsAttention& a = args.a;
        const Rows values = rows_of(a.value, a.value_size, head / (a.heads / a.key_heads));
        for (int x = c.thread(); x < kValueRows * (kWidth / 4); x += kThreads) {
            const int row = x / (kWidth / 4), column = x % (kWidth / 4) * 4, j = key + row;
            load_four(c, slot, row * kValueStride + column, values, j, args.column + column, a.value_size,
                      j >= a.rule.key_begin && j < a.rule.key_end);
        }
    }

    static HS_DEVICE void walk(const Args& args, const Context& c, const BlockRows& rows, int head, int first) {
        const HsAttention& a = args.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        const Slices slices(a, kAdjusted);
        const int t = c.thread(), tx = t % 16, ty = t / 16;
        const auto ring = c.shared<float>(0), weights = c.shared<float>(4 * kWeights);
        const bool with_output = kPass != Pass::sums && a.output.data != nullptr;
        const int parts = slices.count() + (with_output ? kTile / kValueRows : 0), end = rows.end_key();

        int load_key = rows.any() ? rows.first_tile(head) : end, load_at = 0, slot = 0;
        const auto load_next = [&](int to) {
            if (load_key >= end) return;
            const auto place = ring + to * kSlotFloats;
            if (load_at < slices.count())
                load_part(c, a, slices, place, head, load_key, first, load_at);
            else
                load_values(args, c, place, head, load_key + (load_at - slices.count()) * kValueRows);
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

        RowConstant constants[8];
        if (kPass == Pass::weigh) load_constants(args, rows, head, first, ty, constants);
        float o[8][kColumns] = {}, maximum[8], minimum[8], z[8];
        double low = 0.0, high = 0.0;  // sums of row tx % 8: values 0 and 1, or 2 and 3
        Pairs pairs;
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            maximum[r] = kMasked;
            minimum[r] = kHuge;
            z[r] = 0.0f;
        }
        int key = load_key;
        load_next(0);
        while (key < end) {
            float s[8][4] = {}, u[8][4] = {};
            for (int part = 0; part < slices.near; ++part) multiply_slice<false>(c, advance(), s);
            if (kAdjusted) {
                for (int part = 0; part < slices.far; ++part) {
                    if (slices.second == Second::squares)
                        multiply_slice<true>(c, advance(), u);
                    else
                        multiply_slice<false>(c, advance(), u);
                }
            }
            const bool full = rows.is_full(key);
            finish_scores<kAdjusted>(c, a, rows, slices.second, head, key, full, s, u);
            if (kStatistics && kPass != Pass::weigh && args.constants != 0)
                Base::measure_scores(args, c, first, s, minimum, pairs);
            if (kPass == Pass::sums && a.panel != nullptr) Base::store_panel(args, c, key, s);
            float v[4][8], shrink[8], gap[8];
            if (kPass == Pass::online) {
                if (kStatistics && args.constants != 0) Base::keep(args, head, first, key, tx, ty, s);
                Base::exponentials(c, full, s, maximum, shrink, gap, v);
            } else if (kPass == Pass::sums) {
                Base::raise_maxima(c, s, maximum, shrink, gap);
                Base::taylor_sums(normaliser, s, u, v);
            } else {
                Base::weigh_tile(c, normaliser, full, s, u, constants, v);
                if (kStatistics && args.constants != 0) Base::keep(args, head, first, key, tx, ty, s);
            }
            if (kPass == Pass::sums || (kStatistics && args.constants != 0)) {
                float x, y;
                sum_by_halves(c, v, x, y);
                Base::join(c, key, pick(shrink, tx % 8), pick(gap, tx % 8), x, y, low, high);
            } else if (kPass == Pass::online) {
#pragma unroll
                for (int r = 0; r < 8; ++r) z[r] = z[r] * shrink[r] + v[0][r];
            }
            if (with_output) {
                if (kPass == Pass::online)
#pragma unroll
                    for (int r = 0; r < 8; ++r)
#pragma unroll
                        for (int n = 0; n < kColumns; ++n) o[r][n] *= shrink[r];
                if (kAdjusted && !kStatistics && a.rule.dropout_threshold != 0U)
#pragma unroll
                    for (int r = 0; r < 8; ++r)
                        drop_row(
                            a.rule, head, first + ty + 8 * r, [&](int n) { return key + tx + 16 * n; }, s[r]);
#pragma unroll
                for (int r = 0; r < 8; ++r)
#pragma unroll
                    for (int n = 0; n < 4; ++n) weights[(ty + 8 * r) * kWeightStride + tx + 16 * n] = s[r][n];
                for (int part = 0; part < kTile / kValueRows; ++part)
                    multiply_slab<kColumns, kValueRows, kValueStride>(c, weights, part * kValueRows, advance(), o);
            }
            key = rows.next_tile(key + kTile, head);
        }
        if (kPass == Pass::online && !(kStatistics && args.constants != 0)) {
#pragma unroll
            for (int r = 0; r < 8; ++r) z[r] = sum_of_lanes(c, z[r]);
        }
        Base::finish(args, c, head, first, maximum, minimum, z, low, high, pairs);
        if (with_output) Base::write_output(args, c, head, first, o);
    }

    static HS_DEVICE void load_constants(const Args& args, const BlockRows& rows, int head, int first, int ty,
                                         RowConstant (&constants)[8]) {
        const HsAttention& a = args.a;
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const int i = first + ty + 8 * r;
            constants[r] = {0.0f, 0.0f, 0.0f};
            if (i >= a.queries) continue;
            const long long at = static_cast<long long>(head) * a.queries + i;
            constants[r].shift = a.shift[at];
            constants[r].factor = a.factor[at];
            if (a.rule.offsets != nullptr) constants[r].extra = a.rule.offsets[at];
            if (is_per_order(static_cast<Normaliser>(a.normaliser))) {
                const int row = ty + 8 * r;
                constants[r].extra = 1.0f / static_cast<float>(rows.end(row) - rows.begin(row));
            }
        }
    }
};

}  // namespace headscope::gpu
