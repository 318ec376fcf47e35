// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Products of a tile, q.k and weights times values, by two means of one interface: FmaProducts in float32, and
// MmaProducts of bfloat16 on tensor cores. Operands come through the ring of tile.h. Scores, weights and statistics are
// float32 in both and made by the same functions, for the grid of the products.

#include "kernels/gpu/device/scores.h"

namespace headscope::gpu {

class FmaProducts {
public:
    using Grid = FmaGrid;
    using Word = float;
    static constexpr int kValueParts = 4;  ///< slots that the values of 64 keys take

    HS_DEVICE FmaProducts(const Context& c, const HsAttention& a, bool adjusted) : slices(a, adjusted), c_(c), a_(a) {}

    HS_DEVICE void hold_queries(int, int) {}

    /// Loads part `part` < slices.count() of the products of queries from `first` with keys from `key`.
    HS_DEVICE void load(Shared<float> slot, int head, int key, int first, int part) const {
        load_part(c_, a_, slices, slot, head, key, first, part);
    }

    /// s += q.k, u += the second products; advance() gives the next loaded part.
    template <bool kAdjusted, class Advance>
    HS_DEVICE void multiply(const Advance& advance, float (&s)[8][4], float (&u)[8][4]) const {
        for (int part = 0; part < slices.near; ++part) multiply_slice<false>(c_, advance(), s);
        if (!kAdjusted) return;
        for (int part = 0; part < slices.far; ++part) {
            if (slices.second == Second::squares)
                multiply_slice<true>(c_, advance(), u);
            else
                multiply_slice<false>(c_, advance(), u);
        }
    }

    /// Loads part `part` < kValueParts of the values of keys from `key`, columns [column, column + kWidth).
    template <int kWidth>
    HS_DEVICE void load_values(Shared<float> slot, int head, int key, int column, int part) const {
        static_assert(kValueRows * (kWidth + 4) <= kSlotFloats);
        const Rows values = rows_of(a_.value, a_.value_size, head / (a_.heads / a_.key_heads));
        for (int x = c_.thread(); x < kValueRows * (kWidth / 4); x += kTileThreads) {
            const int row = x / (kWidth / 4), at = x % (kWidth / 4) * 4, j = key + part * kValueRows + row;
            load_four(c_, slot, row * (kWidth + 4) + at, values, j, column + at, a_.value_size,
                      j >= a_.rule.key_begin && j < a_.rule.key_end);
        }
    }

    /// o += weights p times values.
    template <int kWidth, class Advance>
    HS_DEVICE void add_values(const Advance& advance, const float (&p)[8][4], float (&o)[8][kWidth / 16]) const {
        const auto weights = c_.shared<float>(8 * kSlotFloats);
        const int t = c_.thread();
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int n = 0; n < 4; ++n) weights[Grid::row(t, r) * kWeightStride + Grid::column(t, n)] = p[r][n];
        for (int part = 0; part < kValueParts; ++part)
            multiply_slab<kWidth / 16, kValueRows, kWidth + 4>(c_, weights, part * kValueRows, advance(), o);
    }

    const Slices slices;

private:
    static constexpr int kValueRows = kTile / kValueParts;

    const Context& c_;
    const HsAttention& a_;
};

/// Two bfloat16 a word. Queries, keys and values are bfloat16; a weight enters as the sum of two such numbers, within
/// 2^-18 of it, so that O of bfloat16 is that of float32 rounded. No normalizer with squares of products.
class MmaProducts {
public:
    using Grid = MmaGrid;
    using Word = unsigned;
    static constexpr int kValueParts = 1;
    static constexpr int kNumbers = 2 * kSlice;  ///< of a row in a slot

    HS_DEVICE MmaProducts(const Context& c, const HsAttention& a, bool adjusted)
        : slices(a, adjusted, kNumbers), c_(c), a_(a), queries_(c.shared<unsigned>(8 * kSlotFloats)) {}

    /// Keeps the queries from `first` for all tiles if they fit; else parts bring them again with each tile.
    HS_DEVICE void hold_queries(int head, int first) {
        static_assert(kTile * (kHeldNumbers / 2 + 4) <= kTile * kWeightStride);
        held_ = slices.second == Second::none && a_.key_size <= kHeldNumbers;
        if (!held_) return;
        const HalfRows rows(a_.query, head);
        for (int x = c_.thread(); x < kTile * (kHeldNumbers / 8); x += kTileThreads) {
            const int row = x / (kHeldNumbers / 8), at = x % (kHeldNumbers / 8);
            load_eight(queries_, row * kHeldStride + at * 4, rows, first + row, at * 8, a_.key_size,
                       first + row < a_.queries);
        }
    }

    HS_DEVICE void load(Shared<unsigned> slot, int head, int key, int first, int part) const {
        const bool far = part >= slices.near;
        const int size = far ? a_.rule.near_begin : a_.key_size, from = (far ? part - slices.near : part) * kNumbers;
        const HalfRows keys(a_.key, head / (a_.heads / a_.key_heads)), queries(a_.query, head);
        const int rows = held_ ? kTile : 2 * kTile;
        for (int x = c_.thread(); x < rows * (kNumbers / 8); x += kTileThreads) {
            const int row = x / (kNumbers / 8), column = x % (kNumbers / 8) * 8;
            const int to = row * kSliceStride + column / 2;
            if (row < kTile) {
                const int j = key + row;
                load_eight(slot, to, keys, j, from + column, size, j >= a_.rule.key_begin && j < a_.rule.key_end);
            } else {
                const int i = first + row - kTile;
                load_eight(slot, to, queries, i, from + column, size, i < a_.queries);
            }
        }
    }

    template <bool kAdjusted, class Advance>
    HS_DEVICE void multiply(const Advance& advance, float (&s)[2][16], float (&u)[2][16]) const {
        for (int part = 0; part < slices.near; ++part) multiply_part(advance(), part, a_.key_size, s);
        if (!kAdjusted) return;
        for (int part = 0; part < slices.far; ++part) multiply_part(advance(), part, a_.rule.near_begin, u);
    }

    template <int kWidth>
    HS_DEVICE void load_values(Shared<unsigned> slot, int head, int key, int column, int) const {
        static_assert(kTile * (kWidth / 2 + 4) <= kSlotFloats);
        const HalfRows values(a_.value, head / (a_.heads / a_.key_heads));
        for (int x = c_.thread(); x < kTile * (kWidth / 8); x += kTileThreads) {
            const int row = x / (kWidth / 8), at = x % (kWidth / 8), j = key + row;
            load_eight(slot, row * (kWidth / 2 + 4) + at * 4, values, j, column + at * 8, a_.value_size,
                       j >= a_.rule.key_begin && j < a_.rule.key_end);
        }
    }

    template <int kWidth, class Advance>
    HS_DEVICE void add_values(const Advance& advance, const float (&p)[2][16], float (&o)[2][kWidth / 4]) const {
        const Shared<unsigned> values = advance();
        const int lane = c_.thread() % 32;
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k) {
            unsigned a[4], rest[4];
#pragma unroll
            for (int x = 0; x < 4; ++x) {
                const float low = p[x % 2][4 * k + x / 2 * 2], high = p[x % 2][4 * k + x / 2 * 2 + 1];
                a[x] = pack_halves(low, high);
                rest[x] = pack_halves(low - float_of(a[x] << 16), high - float_of(a[x] & 0xFFFF0000U));
            }
#pragma unroll
            for (int n = 0; n < kWidth / 8; n += 2) {
                unsigned b[4];
                c_.load_matrices<true>(values, (k * 16 + lane % 16) * (kWidth / 2 + 4) + n * 4 + lane / 16 * 4, b);
                multiply_pair(a, b, n, o);
                multiply_pair(rest, b, n, o);
            }
        }
    }

    const Slices slices;

private:
    static constexpr int kHeldNumbers = 128, kHeldStride = kHeldNumbers / 2 + 4;

    struct HalfRows {
        const std::uint16_t* data;
        bool vectors;  ///< groups of eight numbers are aligned
        long long stride;

        HS_DEVICE HalfRows(const HsMatrix& m, int head)
            : data(static_cast<const std::uint16_t*>(m.data) + head * static_cast<long long>(m.head_stride)),
              vectors(m.head_stride % 8 == 0 && m.row_stride % 8 == 0 &&
                      reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0),
              stride(static_cast<long long>(m.row_stride)) {}
    };

    /// Copies numbers [column, column + 8) of a row to words; zeros where it is not `valid` and beyond `size`.
    HS_DEVICE void load_eight(Shared<unsigned> slot, int at, const HalfRows& rows, int row, int column, int size,
                              bool valid) const {
        const std::uint16_t* from = rows.data + row * rows.stride + column;
        if (rows.vectors && size % 8 == 0) {
            const bool inside = valid && column < size;
            c_.copy16(slot, at, reinterpret_cast<const unsigned*>(inside ? from : rows.data), inside);
            return;
        }
#pragma unroll
        for (int y = 0; y < 8; y += 2) {
            const unsigned low = valid && column + y < size ? from[y] : 0U;
            const unsigned high = valid && column + y + 1 < size ? from[y + 1] : 0U;
            slot[at + y / 2] = low | high << 16;
        }
    }

    /// d += a times the columns of two fragments b of 8 columns each, from 8 n on.
    template <int kColumns>
    HS_DEVICE void multiply_pair(const unsigned (&a)[4], const unsigned (&b)[4], int n, float (&d)[2][kColumns]) const {
        c_.multiply_add(d[0][2 * n], d[0][2 * n + 1], d[1][2 * n], d[1][2 * n + 1], a, b[0], b[1]);
        c_.multiply_add(d[0][2 * n + 2], d[0][2 * n + 3], d[1][2 * n + 2], d[1][2 * n + 3], a, b[2], b[3]);
    }

    HS_DEVICE void multiply_part(Shared<unsigned> slot, int part, int size, float (&s)[2][16]) const {
        const int lane = c_.thread() % 32, row = c_.thread() / 32 * 16 + lane % 16;
        const Shared<unsigned> queries = held_ ? queries_ + part * kSlice : slot + kTile * kSliceStride;
        const int stride = held_ ? kHeldStride : kSliceStride;
#pragma unroll
        for (int k = 0; k < kNumbers / 16; ++k) {
            if (part * kNumbers + k * 16 >= size) break;
            unsigned a[4];
            c_.load_matrices<false>(queries, row * stride + k * 8 + lane / 16 * 4, a);
#pragma unroll
            for (int n = 0; n < kTile / 8; n += 2) {
                unsigned b[4];
                const int key = n * 8 + lane % 8 + lane / 16 * 8;
                c_.load_matrices<false>(slot, key * kSliceStride + k * 8 + lane / 8 % 2 * 4, b);
                multiply_pair(a, b, n, s);
            }
        }
    }

    const Context& c_;
    const HsAttention& a_;
    Shared<unsigned> queries_;
    bool held_ = false;
};

}  // namespace headscope::gpu
