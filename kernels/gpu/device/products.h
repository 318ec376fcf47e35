// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Products of a tile, q.k, v.dO and weights times rows, by two means of one interface: FmaProducts in float32, and
// MmaProducts of bfloat16 on tensor cores. Operands come through the ring of tile.h. Scores, weights, slopes and
// statistics are float32 in both and made by the same functions, for the grid of the products.

#include "kernels/gpu/device/scores.h"

namespace headscope::gpu {

/// Rows [first, first + 64) of a head; those outside [begin, end) count as zeros.
struct RowTile {
    const HsMatrix& matrix;
    int head, size, first, begin, end;
};

/// Keys, or their values, from `key` on that a query head reads.
HS_DEVICE RowTile key_tile(const HsAttention& a, const HsMatrix& matrix, int size, int head, int key) {
    return {matrix, head / (a.heads / a.key_heads), size, key, a.rule.key_begin, a.rule.key_end};
}

class FmaProducts {
public:
    using Grid = FmaGrid;
    using Word = float;
    static constexpr int kRowParts = 4;                         ///< slots that a RowTile takes
    static constexpr int kWeightWords = kTile * kWeightStride;  ///< shared memory behind the ring

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

    HS_DEVICE int gradient_parts() const { return (a_.value_size + kSlice - 1) / kSlice; }

    /// Loads part `part` < gradient_parts() of the products of rows of `gradient`, d loss / d O of queries from
    /// `first`, with values of keys from `key`.
    HS_DEVICE void load_gradients(Shared<float> slot, const HsMatrix& gradient, int head, int key, int first,
                                  int part) const {
        load_slices(c_, slot, rows_of(a_.value, a_.value_size, head / (a_.heads / a_.key_heads)), key,
                    a_.rule.key_begin, a_.rule.key_end, rows_of(gradient, a_.value_size, head), first,
                    a_.rule.query_end, part, a_.value_size);
    }

    /// u += v.dO
    template <class Advance>
    HS_DEVICE void multiply_gradients(const Advance& advance, float (&u)[8][4]) const {
        for (int part = 0; part < gradient_parts(); ++part) multiply_slice<false>(c_, advance(), u);
    }

    /// Loads part `part` < kRowParts of columns [column, column + kWidth) of a tile.
    template <int kWidth>
    HS_DEVICE void load_rows(Shared<float> slot, const RowTile& tile, int column, int part) const {
        static_assert(kPartRows * (kWidth + 4) <= kSlotFloats);
        const Rows rows = rows_of(tile.matrix, tile.size, tile.head);
        for (int x = c_.thread(); x < kPartRows * (kWidth / 4); x += kTileThreads) {
            const int row = x / (kWidth / 4), at = x % (kWidth / 4) * 4, from = tile.first + part * kPartRows + row;
            load_four(c_, slot, row * (kWidth + 4) + at, rows, from, column + at, tile.size,
                      from >= tile.begin && from < tile.end);
        }
    }

    /// o += p, or its transpose, times the rows that load_rows() brings; p has queries as rows and keys as columns.
    template <int kWidth, bool kTransposed, class Advance>
    HS_DEVICE void add_rows(const Advance& advance, const float (&p)[8][4], float (&o)[8][kWidth / 16]) const {
        const auto weights = c_.shared<float>(8 * kSlotFloats);
        const int t = c_.thread();
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const int i = Grid::row(t, r), j = Grid::column(t, n);
                weights[kTransposed ? j * kWeightStride + i : i * kWeightStride + j] = p[r][n];
            }
        for (int part = 0; part < kRowParts; ++part)
            multiply_slab<kWidth / 16, kPartRows, kWidth + 4>(c_, weights, part * kPartRows, advance(), o);
    }

    const Slices slices;

private:
    static constexpr int kPartRows = kTile / kRowParts;

    const Context& c_;
    const HsAttention& a_;
};

/// Two numbers as the sum of two words of bfloat16 each, within 2^-18 of them.
struct SplitPair {
    unsigned word, rest;
};

HS_DEVICE SplitPair split_pair(float low, float high) {
    const unsigned word = pack_halves(low, high);
    return {word, pack_halves(low - float_of(word << 16), high - float_of(word & 0xFFFF0000U))};
}

/// Two bfloat16 a word. Queries, keys, values and d loss / d O are bfloat16; a weight, or d loss / d score, enters as
/// the sum of two such numbers, so that O and gradients of bfloat16 are those of float32 rounded. No normalizer with
/// squares of products.
class MmaProducts {
public:
    using Grid = MmaGrid;
    using Word = unsigned;
    static constexpr int kRowParts = 1;
    static constexpr int kNumbers = 2 * kSlice;  ///< of a row in a slot
    static constexpr int kSplitStride = kTile / 2 + 4, kWeightWords = 2 * kTile * kSplitStride;

    HS_DEVICE MmaProducts(const Context& c, const HsAttention& a, bool adjusted)
        : slices(a, adjusted, kNumbers), c_(c), a_(a), queries_(c.shared<unsigned>(8 * kSlotFloats)) {}

    /// Keeps the queries from `first` for all tiles if they fit; else parts bring them again with each tile. They lie
    /// where add_rows() puts transposed weights.
    HS_DEVICE void hold_queries(int head, int first) {
        static_assert(kTile * kHeldStride <= kTile * kWeightStride && kTile * kHeldStride <= kWeightWords);
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
        load_sides(slot, HalfRows(a_.key, head / (a_.heads / a_.key_heads)), key, HalfRows(a_.query, head), first,
                   a_.queries, from, size, held_ ? kTile : 2 * kTile);
    }

    template <bool kAdjusted, class Advance>
    HS_DEVICE void multiply(const Advance& advance, float (&s)[2][16], float (&u)[2][16]) const {
        for (int part = 0; part < slices.near; ++part) multiply_part(advance(), part, a_.key_size, s);
        if (!kAdjusted) return;
        for (int part = 0; part < slices.far; ++part) multiply_part(advance(), part, a_.rule.near_begin, u);
    }

    HS_DEVICE int gradient_parts() const { return (a_.value_size + kNumbers - 1) / kNumbers; }

    HS_DEVICE void load_gradients(Shared<unsigned> slot, const HsMatrix& gradient, int head, int key, int first,
                                  int part) const {
        load_sides(slot, HalfRows(a_.value, head / (a_.heads / a_.key_heads)), key, HalfRows(gradient, head), first,
                   a_.rule.query_end, part * kNumbers, a_.value_size, 2 * kTile);
    }

    template <class Advance>
    HS_DEVICE void multiply_gradients(const Advance& advance, float (&u)[2][16]) const {
        for (int part = 0; part < gradient_parts(); ++part) {
            const Shared<unsigned> slot = advance();
            multiply_sides(slot, slot + kTile * kSliceStride, kSliceStride, a_.value_size - part * kNumbers, u);
        }
    }

    template <int kWidth>
    HS_DEVICE void load_rows(Shared<unsigned> slot, const RowTile& tile, int column, int) const {
        static_assert(kTile * (kWidth / 2 + 4) <= kSlotFloats);
        const HalfRows rows(tile.matrix, tile.head);
        for (int x = c_.thread(); x < kTile * (kWidth / 8); x += kTileThreads) {
            const int row = x / (kWidth / 8), at = x % (kWidth / 8), from = tile.first + row;
            load_eight(slot, row * (kWidth / 2 + 4) + at * 4, rows, from, column + at * 8, tile.size,
                       from >= tile.begin && from < tile.end);
        }
    }

    template <int kWidth, bool kTransposed, class Advance>
    HS_DEVICE void add_rows(const Advance& advance, const float (&p)[2][16], float (&o)[2][kWidth / 4]) const {
        const auto weights = c_.shared<unsigned>(8 * kSlotFloats);
        if (kTransposed) store_split(weights, p);
        const Shared<unsigned> rows = advance();
        const int lane = c_.thread() % 32;
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k) {
            unsigned a[4], rest[4];
            if (kTransposed) {
                // Matrices of 8 queries x 8 of the warp's 16 keys: keys side by side, queries one above the other.
                const int query = k * 16 + lane / 16 * 8 + lane % 8;
                const int at = query * kSplitStride + c_.thread() / 32 * 8 + lane / 8 % 2 * 4;
                c_.load_matrices<true>(weights, at, a);
                c_.load_matrices<true>(weights, kTile * kSplitStride + at, rest);
            } else {
#pragma unroll
                for (int x = 0; x < 4; ++x) {
                    const SplitPair pair = split_pair(p[x % 2][4 * k + x / 2 * 2], p[x % 2][4 * k + x / 2 * 2 + 1]);
                    a[x] = pair.word;
                    rest[x] = pair.rest;
                }
            }
#pragma unroll
            for (int n = 0; n < kWidth / 8; n += 2) {
                unsigned b[4];
                c_.load_matrices<true>(rows, (k * 16 + lane % 16) * (kWidth / 2 + 4) + n * 4 + lane / 16 * 4, b);
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

    /// Loads numbers [from, from + kNumbers) of 64 keys, and of 64 queries behind them if `rows` is 128.
    HS_DEVICE void load_sides(Shared<unsigned> slot, const HalfRows& keys, int key, const HalfRows& queries, int first,
                              int query_end, int from, int size, int rows) const {
        for (int x = c_.thread(); x < rows * (kNumbers / 8); x += kTileThreads) {
            const int row = x / (kNumbers / 8), column = x % (kNumbers / 8) * 8;
            const int to = row * kSliceStride + column / 2;
            if (row < kTile) {
                const int j = key + row;
                load_eight(slot, to, keys, j, from + column, size, j >= a_.rule.key_begin && j < a_.rule.key_end);
            } else {
                const int i = first + row - kTile;
                load_eight(slot, to, queries, i, from + column, size, i < query_end);
            }
        }
    }

    /// p by queries, 64 keys a row: words of bfloat16, then those of the rests.
    HS_DEVICE void store_split(Shared<unsigned> weights, const float (&p)[2][16]) const {
        const int t = c_.thread();
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int n = 0; n < 16; n += 2) {
                const int at = Grid::row(t, r) * kSplitStride + Grid::column(t, n) / 2;
                const SplitPair pair = split_pair(p[r][n], p[r][n + 1]);
                weights[at] = pair.word;
                weights[kTile * kSplitStride + at] = pair.rest;
            }
    }

    /// d += a times the columns of two fragments b of 8 columns each, from 8 n on.
    template <int kColumns>
    HS_DEVICE void multiply_pair(const unsigned (&a)[4], const unsigned (&b)[4], int n, float (&d)[2][kColumns]) const {
        c_.multiply_add(d[0][2 * n], d[0][2 * n + 1], d[1][2 * n], d[1][2 * n + 1], a, b[0], b[1]);
        c_.multiply_add(d[0][2 * n + 2], d[0][2 * n + 3], d[1][2 * n + 2], d[1][2 * n + 3], a, b[2], b[3]);
    }

    HS_DEVICE void multiply_part(Shared<unsigned> slot, int part, int size, float (&s)[2][16]) const {
        const Shared<unsigned> queries = held_ ? queries_ + part * kSlice : slot + kTile * kSliceStride;
        multiply_sides(slot, queries, held_ ? kHeldStride : kSliceStride, size - part * kNumbers, s);
    }

    /// s += the products of the first `numbers` of at most kNumbers numbers of queries and keys.
    HS_DEVICE void multiply_sides(Shared<unsigned> keys, Shared<unsigned> queries, int query_stride, int numbers,
                                  float (&s)[2][16]) const {
        const int lane = c_.thread() % 32, row = c_.thread() / 32 * 16 + lane % 16;
#pragma unroll
        for (int k = 0; k < kNumbers / 16; ++k) {
            if (k * 16 >= numbers) break;
            unsigned a[4];
            c_.load_matrices<false>(queries, row * query_stride + k * 8 + lane / 16 * 4, a);
#pragma unroll
            for (int n = 0; n < kTile / 8; n += 2) {
                unsigned b[4];
                const int key = n * 8 + lane % 8 + lane / 16 * 8;
                c_.load_matrices<false>(keys, key * kSliceStride + k * 8 + lane / 8 % 2 * 4, b);
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
