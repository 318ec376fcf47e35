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

/// Tiles of d loss / d s in shared memory. Products as in backward.h.
template <class Products>
struct SlopeTile {
    using Grid = typename Products::Grid;
    static constexpr int kWeights = 2 * kSlotFloats, kRanges = kWeights + kTile * kWeightStride;
    static constexpr int kShared = 4 * (kRanges + BlockRows::kInts);

    /// All threads of the block; begins and ends with a barrier.
    static HS_DEVICE void make(const RuleGradientArgs& args, const Context& c, const Products& products,
                               const BlockRows& rows, int head, int key) {
        const HsAttention& a = args.b.a;
        const int t = c.thread(), first = rows.first();
        const int near = products.slices.near, parts = near + products.gradient_parts();
        const auto ring = c.shared<typename Products::Word>(0);
        const auto weights = c.shared<float>(4 * kWeights);
        int step = 0;
        const auto load = [&](int part) {
            const auto slot = ring + part % 2 * kSlotFloats;
            if (part < near)
                products.load(slot, head, key, first, part);
            else if (part < parts)
                products.load_gradients(slot, args.b.gradient, head, key, first, part - near);
        };
        const auto advance = [&]() {
            c.wait_copies();
            c.sync();
            load(step + 1);
            return ring + step++ % 2 * kSlotFloats;
        };
        c.sync();
        load(0);
        float s[Grid::kRows][Grid::kColumns] = {}, u[Grid::kRows][Grid::kColumns] = {};
        products.template multiply<false>(advance, s, u);
        products.multiply_gradients(advance, u);
        finish_scores<true, Grid>(c, a, rows, Second::none, head, key, rows.is_full(key), s, u);
        const GradientArgs plain{args.b, 0};
#pragma unroll
        for (int r = 0; r < Grid::kRows; ++r) {
            float sums, slopes, kept;
            const int row = Grid::row(t, r), i = first + row;
            if (a.rule.dropout_threshold != 0U)
                drop_row(
                    a.rule, head, i, [&](int n) { return key + Grid::column(t, n); }, u[r]);
            GradientBlock<Of::query, 64, Products>::differentiate(plain, c, head, i, s[r], u[r], sums, slopes, kept);
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) weights[row * kWeightStride + Grid::column(t, n)] = s[r][n];
        }
        c.sync();
    }
};

/// Sums along 64 diagonals of a head; a thread owns one of them.
template <class Products>
struct DiagonalGradient {
    using Args = RuleGradientArgs;
    using Slopes = SlopeTile<Products>;
    static constexpr int kThreads = kTileThreads, kShared = Slopes::kShared;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int count = a.queries + a.keys - 1, bands = (count + kTile - 1) / kTile;
        const int head = c.block() / bands, band = c.block() % bands * kTile, t = c.thread();
        const Products products(c, a, false);
        const auto weights = c.shared<float>(4 * Slopes::kWeights);
        double sum = 0.0;
        for (int first = 0; first < a.rule.query_end; first += kTile) {
            c.sync();
            const BlockRows rows(c, args.rule, c.shared<int>(4 * Slopes::kRanges), first);
            const int lowest = first + band - (a.queries - 1), highest = lowest + 2 * kTile - 2;
            for (int key = most(0, lowest) / kTile * kTile; key <= highest && key < a.keys; key += kTile) {
                if (!rows.sees(key, head)) continue;
                Slopes::make(args, c, products, rows, head, key);
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
template <class Products>
struct KeyGradient {
    using Args = RuleGradientArgs;
    using Slopes = SlopeTile<Products>;
    static constexpr int kThreads = kTileThreads, kShared = Slopes::kShared;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int head = c.block() % a.heads, key = c.block() / a.heads * kTile, t = c.thread();
        const int own_block = (key + t) / a.rule.block_size;
        const Products products(c, a, false);
        const auto weights = c.shared<float>(4 * Slopes::kWeights);
        double sum = 0.0;
        for (int first = 0; first < a.rule.query_end; first += kTile) {
            c.sync();
            const BlockRows rows(c, args.rule, c.shared<int>(4 * Slopes::kRanges), first);
            if (!rows.sees(key, head)) continue;
            Slopes::make(args, c, products, rows, head, key);
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
