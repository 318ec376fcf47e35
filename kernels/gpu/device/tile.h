// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tiles of 64 queries x 64 keys by 128 threads. Thread t has tx = t % 16 and ty = t / 16; it owns the scores of rows
// ty + 8 r (r < 8) and columns tx + 16 n (n < 4), so that the 16 lanes of a half warp share their rows. Operands come
// through a ring of two slots: slices of 32 numbers of the rows of both sides, or 16 rows of values.

#include "kernels/gpu/device/platform.h"
#include "kernels/gpu/plugin.h"
#include "kernels/summary/both.h"

namespace headscope::gpu {

using kernels::kLn2;
using kernels::kLog2E;

inline constexpr int kTile = 64, kSlice = 32, kTileThreads = 128;
inline constexpr int kSliceStride = kSlice + 4;  ///< floats of a row in a slot; padded against bank conflicts
inline constexpr int kWeightStride = kTile + 4;
inline constexpr int kSlotFloats = 2 * kTile * kSliceStride;
inline constexpr float kMasked = -1e30f;     ///< t of a pair that is not allowed
inline constexpr float kAllowed = -0.5e30f;  ///< t of allowed pairs lies above
inline constexpr float kHuge = 1e30f;
inline constexpr float kSmallestNormal = 0x1p-126f;

HS_DEVICE float least(float a, float b) {
    return a < b ? a : b;
}
HS_DEVICE float most(float a, float b) {
    return a > b ? a : b;
}
HS_DEVICE int least(int a, int b) {
    return a < b ? a : b;
}
HS_DEVICE int most(int a, int b) {
    return a > b ? a : b;
}

HS_DEVICE float load_element(const void* data, int type, long long at) {
    if (type == HS_FLOAT32) return static_cast<const float*>(data)[at];
    return float_of(static_cast<unsigned>(static_cast<const std::uint16_t*>(data)[at]) << 16);
}

/// The bits of x rounded to bfloat16.
HS_DEVICE unsigned round_half(float x) {
    const unsigned bits = bits_of(x);
    return x == x ? (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16 : (bits >> 16) | 0x40U;
}

HS_DEVICE void store_element(void* data, int type, long long at, float x) {
    if (type == HS_FLOAT32) {
        static_cast<float*>(data)[at] = x;
        return;
    }
    static_cast<std::uint16_t*>(data)[at] = static_cast<std::uint16_t>(round_half(x));
}

/// Rows and columns of a tile of scores, and columns of O, that a thread owns: those of tile products in float32.
struct FmaGrid {
    static constexpr int kLanes = 16, kRows = 8, kColumns = 4;  ///< lanes that share their rows
    static HS_DEVICE int row(int t, int r) { return t / 16 + 8 * r; }
    static HS_DEVICE int column(int t, int n) { return t % 16 + 16 * n; }
    static HS_DEVICE int output_column(int t, int n) { return n / 4 * 64 + t % 16 * 4 + n % 4; }
};

/// The same by mma.m16n8k16: a warp has 16 rows, four lanes share two of them.
struct MmaGrid {
    static constexpr int kLanes = 4, kRows = 2, kColumns = 16;
    static HS_DEVICE int row(int t, int r) { return t / 32 * 16 + t % 32 / 4 + 8 * r; }
    static HS_DEVICE int column(int t, int n) { return n / 2 * 8 + t % 4 * 2 + n % 2; }
    static HS_DEVICE int output_column(int t, int n) { return column(t, n); }
};

HS_DEVICE float element(const HsMatrix& m, int head, int row, int column) {
    return load_element(
        m.data, m.type,
        head * static_cast<long long>(m.head_stride) + row * static_cast<long long>(m.row_stride) + column);
}

HS_DEVICE void store(const HsTarget& to, int head, int row, int column, float x) {
    store_element(to.data, to.type,
                  head * static_cast<long long>(to.head_stride) + row * static_cast<long long>(to.row_stride) + column,
                  x);
}

/// Rows of one head.
struct Rows {
    const void* data;
    int type, size;
    bool vectors;  ///< groups of four numbers are aligned float32
    long long first, stride;
};

HS_BOTH bool has_vectors(const HsMatrix& m, int size) {
    return m.type == HS_FLOAT32 && size % 4 == 0 && m.head_stride % 4 == 0 && m.row_stride % 4 == 0 &&
           reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0;
}

HS_DEVICE Rows rows_of(const HsMatrix& m, int size, int head) {
    return {m.data,
            m.type,
            size,
            has_vectors(m, size),
            head * static_cast<long long>(m.head_stride),
            static_cast<long long>(m.row_stride)};
}

/// Copies numbers [column, column + 4) of row `row` to slot + at; zeros where the row is not `valid` and beyond `size`.
HS_DEVICE void load_four(const Context& c, Shared<float> slot, int at, const Rows& rows, int row, int column, int size,
                         bool valid) {
    if (rows.vectors && size % 4 == 0) {
        const bool inside = valid && column < size;
        const float* from = static_cast<const float*>(rows.data);
        c.copy16(slot, at, inside ? from + rows.first + row * rows.stride + column : from, inside);
        return;
    }
#pragma unroll
    for (int y = 0; y < 4; ++y) {
        const bool inside = valid && column + y < size;
        slot[at + y] = inside ? load_element(rows.data, rows.type, rows.first + row * rows.stride + column + y) : 0.0f;
    }
}

/// Loads slice `slice` of keys [key, key + 64) and of queries [query, query + 64); rows outside the ranges are 0.
HS_DEVICE void load_slices(const Context& c, Shared<float> slot, const Rows& keys, int key, int key_begin, int key_end,
                           const Rows& queries, int query, int query_end, int slice, int size) {
    for (int x = c.thread(); x < 2 * kTile * (kSlice / 4); x += kTileThreads) {
        const int row = x / (kSlice / 4), column = x % (kSlice / 4) * 4;
        if (row < kTile) {
            const int j = key + row;
            load_four(c, slot, row * kSliceStride + column, keys, j, slice * kSlice + column, size,
                      j >= key_begin && j < key_end);
        } else {
            const int i = query + row - kTile;
            load_four(c, slot, row * kSliceStride + column, queries, i, slice * kSlice + column, size, i < query_end);
        }
    }
}

/// s[r][n] += the products of a slice; of their squares with kSquares.
template <bool kSquares>
HS_DEVICE void multiply_slice(const Context& c, Shared<float> slot, float (&s)[8][4]) {
    const int tx = c.thread() % 16, ty = c.thread() / 16;
#pragma unroll 2
    for (int x = 0; x < kSlice; x += 4) {
        Float4 b[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            b[n] = load4(slot, (tx + 16 * n) * kSliceStride + x);
            if (kSquares) b[n] = {b[n].x * b[n].x, b[n].y * b[n].y, b[n].z * b[n].z, b[n].w * b[n].w};
        }
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            Float4 a = load4(slot, (kTile + ty + 8 * r) * kSliceStride + x);
            if (kSquares) a = {a.x * a.x, a.y * a.y, a.z * a.z, a.w * a.w};
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                s[r][n] += a.x * b[n].x;
                s[r][n] += a.y * b[n].y;
                s[r][n] += a.z * b[n].z;
                s[r][n] += a.w * b[n].w;
            }
        }
    }
}

/// o += weights of columns [from, from + kRows) times kRows rows of values.
template <int kColumns, int kRows, int kStride>
HS_DEVICE void multiply_slab(const Context& c, Shared<float> weights, int from, Shared<float> values,
                             float (&o)[8][kColumns]) {
    const int tx = c.thread() % 16, ty = c.thread() / 16;
#pragma unroll 1
    for (int x = 0; x < kRows; x += 4) {
        Float4 w[8];
#pragma unroll
        for (int r = 0; r < 8; ++r) w[r] = load4(weights, (ty + 8 * r) * kWeightStride + from + x);
#pragma unroll
        for (int y = 0; y < 4; ++y)
#pragma unroll
            for (int n = 0; n < kColumns; n += 4) {
                const Float4 b = load4(values, (x + y) * kStride + n * 16 + tx * 4);
#pragma unroll
                for (int r = 0; r < 8; ++r) {
                    const float left = y == 0 ? w[r].x : y == 1 ? w[r].y : y == 2 ? w[r].z : w[r].w;
                    o[r][n] += left * b.x;
                    o[r][n + 1] += left * b.y;
                    o[r][n + 2] += left * b.z;
                    o[r][n + 3] += left * b.w;
                }
            }
    }
}

/// Sums four values of each of a thread's 8 rows over the 16 lanes by halving. Lane tx gets the sums of row tx % 8:
/// values 0 and 1 for tx < 8, values 2 and 3 for the others. The order of additions is fixed.
HS_DEVICE void sum_by_halves(const Context& c, const float (&v)[4][8], float& a, float& b) {
    const int tx = c.thread() % 16;
    const bool up8 = (tx & 8) != 0, up4 = (tx & 4) != 0, up2 = (tx & 2) != 0, up1 = (tx & 1) != 0;
    float w[2][8], x[2][4], y[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int r = 0; r < 8; ++r)
            w[n][r] = (up8 ? v[2 + n][r] : v[n][r]) + c.shuffle_xor(up8 ? v[n][r] : v[2 + n][r], 8);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int r = 0; r < 4; ++r)
            x[n][r] = (up4 ? w[n][r + 4] : w[n][r]) + c.shuffle_xor(up4 ? w[n][r] : w[n][r + 4], 4);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int r = 0; r < 2; ++r)
            y[n][r] = (up2 ? x[n][r + 2] : x[n][r]) + c.shuffle_xor(up2 ? x[n][r] : x[n][r + 2], 2);
    a = (up1 ? y[0][1] : y[0][0]) + c.shuffle_xor(up1 ? y[0][0] : y[0][1], 1);
    b = (up1 ? y[1][1] : y[1][0]) + c.shuffle_xor(up1 ? y[1][0] : y[1][1], 1);
}

/// The same over the 4 lanes of MmaGrid: lane x gets the sums of row x % 2, values 0 and 1 for x < 2.
HS_DEVICE void sum_by_halves(const Context& c, const float (&v)[4][2], float& a, float& b) {
    const bool up2 = (c.thread() & 2) != 0, up1 = (c.thread() & 1) != 0;
    float w[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int r = 0; r < 2; ++r)
            w[n][r] = (up2 ? v[2 + n][r] : v[n][r]) + c.shuffle_xor(up2 ? v[n][r] : v[2 + n][r], 2);
    a = (up1 ? w[0][1] : w[0][0]) + c.shuffle_xor(up1 ? w[0][0] : w[0][1], 1);
    b = (up1 ? w[1][1] : w[1][0]) + c.shuffle_xor(up1 ? w[1][0] : w[1][1], 1);
}

/// x[r] without an array in local memory.
HS_DEVICE float pick(const float (&x)[2], int r) {
    return (r & 1) != 0 ? x[1] : x[0];
}
HS_DEVICE float pick(const float (&x)[8], int r) {
    const float a = (r & 1) != 0 ? x[1] : x[0], b = (r & 1) != 0 ? x[3] : x[2];
    const float d = (r & 1) != 0 ? x[5] : x[4], e = (r & 1) != 0 ? x[7] : x[6];
    const float f = (r & 2) != 0 ? b : a, g = (r & 2) != 0 ? e : d;
    return (r & 4) != 0 ? g : f;
}

}  // namespace headscope::gpu
