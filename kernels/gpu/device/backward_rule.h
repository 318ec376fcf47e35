// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Gradients of what a rule adds to pairs: sums of d loss / d s along diagonals (distance biases) and down columns
// (visible blocks). The host adds diagonals to the columns of a table, and keys to blocks.

#include "kernels/gpu/device/backward.h"

namespace headscope::gpu {

struct RuleGradientArgs {
    HsBackward b;
    HsRule rule;  ///< which pairs count; scores are those of b.a.rule
};

/// Tiles of d loss / d s in shared memory.
struct SlopeTile {
    static constexpr int kWeights = 2 * kSlotFloats, kRanges = kWeights + kTile * kWeightStride;
    static constexpr int kShared = 4 * (kRanges + BlockRows::kInts);

    /// All threads of the block; begins and ends with a barrier.
    static HS_DEVICE void make(const RuleGradientArgs& args, const Context& c, const BlockRows& rows, int head,
                               int key) {
        const HsAttention& a = args.b.a;
        const Slices slices(a, false);
        const int tx = c.thread() % 16, ty = c.thread() / 16, first = rows.first();
        const int key_head = head / (a.heads / a.key_heads);
        const int parts = slices.near + (a.value_size + kSlice - 1) / kSlice;
        const auto ring = c.shared<float>(0), weights = c.shared<float>(4 * kWeights);
        const auto load = [&](int part) {
            const auto slot = ring + part % 2 * kSlotFloats;
            if (part < slices.near)
                load_part(c, a, slices, slot, head, key, first, part);
            else if (part < parts)
                load_slices(c, slot, rows_of(a.value, a.value_size, key_head), key, a.rule.key_begin, a.rule.key_end,
                            rows_of(args.b.gradient, a.value_size, head), first, a.rule.query_end, part - slices.near,
                            a.value_size);
        };
        c.sync();
        load(0);
        float s[8][4] = {}, u[8][4] = {};
        for (int part = 0; part < parts; ++part) {
            c.wait_copies();
            c.sync();
            load(part + 1);
            const auto ready = ring + part % 2 * kSlotFloats;
            if (part < slices.near)
                multiply_slice<false>(c, ready, s);
            else
                multiply_slice<false>(c, ready, u);
        }
        finish_scores<true>(c, a, rows, Second::none, head, key, rows.is_full(key), s, u);
        const GradientArgs plain{args.b, 0};
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            float products, slopes, kept;
            const int i = first + ty + 8 * r;
            if (a.rule.dropout_threshold != 0U)
                drop_row(
                    a.rule, head, i, [&](int n) { return key + tx + 16 * n; }, u[r]);
            Gradient<Of::query, 64>::differentiate(plain, c, head, i, s[r], u[r], products, slopes, kept);
#pragma unroll
            for (int n = 0; n < 4; ++n) weights[(ty + 8 * r) * kWeightStride + tx + 16 * n] = s[r][n];
        }
        c.sync();
    }
};

/// Sums along 64 diagonals of a head; a thread owns one of them.
struct DiagonalGradient {
    using Args = RuleGradientArgs;
    static constexpr int kThreads = kTileThreads, kShared = SlopeTile::kShared;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int count = a.queries + a.keys - 1, bands = (count + kTile - 1) / kTile;
        const int head = c.block() / bands, band = c.block() % bands * kTile, t = c.thread();
        const auto weights = c.shared<float>(4 * SlopeTile::kWeights);
        double sum = 0.0;
        for (int first = 0; first < a.rule.query_end; first += kTile) {
            c.sync();
            const BlockRows rows(c, args.rule, c.shared<int>(4 * SlopeTile::kRanges), first);
            const int lowest = first + band - (a.queries - 1), highest = lowest + 2 * kTile - 2;
            for (int key = most(0, lowest) / kTile * kTile; key <= highest && key < a.keys; key += kTile) {
                if (!rows.sees(key, head)) continue;
                SlopeTile::make(args, c, rows, head, key);
                float own = 0.0f;
                for (int r = 0; t < kTile && r < kTile; ++r) {
                    const int column = lowest + r + t - key;
                    if (column >= 0 && column < kTile) own += weights[r * kWeightStride + column];
                }
                sum += static_cast<double>(own);
            }
        }
        if (t < kTile && band + t < count) args.b.diagonals[static_cast<long long>(head) * count + band + t] = sum;
    }
};

/// Sums of 64 keys of a head over queries of other blocks; a thread owns one of them.
struct KeyGradient {
    using Args = RuleGradientArgs;
    static constexpr int kThreads = kTileThreads, kShared = SlopeTile::kShared;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int head = c.block() % a.heads, key = c.block() / a.heads * kTile, t = c.thread();
        const int own_block = (key + t) / a.rule.block_size;
        const auto weights = c.shared<float>(4 * SlopeTile::kWeights);
        double sum = 0.0;
        for (int first = 0; first < a.rule.query_end; first += kTile) {
            c.sync();
            const BlockRows rows(c, args.rule, c.shared<int>(4 * SlopeTile::kRanges), first);
            if (!rows.sees(key, head)) continue;
            SlopeTile::make(args, c, rows, head, key);
            float own = 0.0f;
            for (int r = 0; t < kTile && r < kTile; ++r)
                if (block_of(first + r + a.rule.query_offset, a.rule.block_size) != own_block)
                    own += weights[r * kWeightStride + t];
            sum += static_cast<double>(own);
        }
        if (t < kTile && key + t < a.keys) args.b.of_keys[static_cast<long long>(head) * a.keys + key + t] = sum;
    }
};

}  // namespace headscope::gpu
