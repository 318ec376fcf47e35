// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Gradients of attention. Each result has one owner, so no sum depends on an order of blocks: a block owns 64 queries
// of a head, or 64 keys of a key head and walks the heads that read it. Scores and d loss / d A are computed again in
// each launch; columns beyond 128 are launches of their own.

#include "kernels/gpu/device/dropout.h"
#include "kernels/gpu/device/reduce.h"
#include "kernels/gpu/device/scores.h"

namespace headscope::gpu {

enum class Of : std::uint8_t { query, key, value, rows };

struct GradientArgs {
    HsBackward b;
    int column;  ///< first column of the result
};

struct WeightAndSlope {
    float weight, slope;
};

/// An allowed pair's weight and its slope (kernels/normaliser.h, RowMean). Normalizers that train.
HS_DEVICE WeightAndSlope weigh_with_slope(const Context& c, Normaliser normaliser, float t, const RowConstant& row) {
    const float weight = weigh(c, normaliser, t, 0.0f, row);
    switch (normaliser) {
        case Normaliser::sparsemax:
            return {weight, weight > 0.0f ? 1.0f : 0.0f};
        case Normaliser::entmax:
            return {weight, sqrtf(weight)};
        case Normaliser::sigmoid:
            return {weight, weight - weight * weight};
        case Normaliser::taylor:
            return {weight, (1.0f + t * kFirstOrder) * row.factor};
        case Normaliser::elastic:
            return {weight, weigh(c, Normaliser::softmax, t, 0.0f, row)};
        default:
            return {weight, weight};
    }
}

HS_DEVICE RowConstant constant_of(const HsAttention& a, int head, int i) {
    if (i >= a.queries) return {0.0f, 0.0f, 0.0f};
    const long long at = static_cast<long long>(head) * a.queries + i;
    return {a.shift[at], a.factor[at], a.rule.offsets == nullptr ? 0.0f : a.rule.offsets[at]};
}

/// The sum of O dO of each row: RowMean::output. 16 lanes a row.
struct OutputMean {
    using Args = GradientArgs;
    static constexpr int kThreads = kTileThreads, kRows = kThreads / 16, kShared = 16;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const long long row = static_cast<long long>(c.block()) * kRows + c.thread() / 16;
        const bool exists = row < static_cast<long long>(a.heads) * a.queries;
        const int head = exists ? static_cast<int>(row / a.queries) : 0,
                  i = exists ? static_cast<int>(row % a.queries) : 0;
        const Rows o = rows_of(args.b.output, a.value_size, head), d = rows_of(args.b.gradient, a.value_size, head);
        float sum = 0.0f;
        for (int x = c.thread() % 16; exists && i < a.rule.query_end && x < a.value_size; x += 16)
            sum += load_element(o.data, o.type, o.first + i * o.stride + x) *
                   load_element(d.data, d.type, d.first + i * d.stride + x);
        sum = sum_of_lanes(c, sum);
        if (exists && c.thread() % 16 == 0) args.b.mean[row] = sum;
    }
};

/// d loss / d sink logit of a head, a block a head.
struct SinkGradient {
    using Args = GradientArgs;
    static constexpr int kThreads = kTileThreads, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int head = c.block();
        double sum = 0.0;
        for (int i = c.thread(); i < a.rule.query_end; i += kThreads) {
            const float slope = weigh_with_slope(c, static_cast<Normaliser>(a.normaliser), a.rule.sink_logits[head],
                                                 constant_of(a, head, i))
                                    .slope;
            const float mean = args.b.mean[static_cast<long long>(head) * a.queries + i];
            sum -= static_cast<double>(slope) * static_cast<double>(mean);
        }
        sum = sum_of_block<kThreads>(c, c.shared<double>(0), sum);
        if (c.thread() == 0) args.b.sinks[head] = sum;
    }
};

/// d loss / d offset of a head: row sums of d loss / d A over weights above 0, times the row's share of the offset.
struct OffsetGradient {
    using Args = GradientArgs;
    static constexpr int kThreads = kTileThreads, kShared = 8 * kThreads;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        double sum = 0.0;
        for (int i = c.thread(); i < a.rule.query_end; i += kThreads)
            sum += args.b.kept[static_cast<long long>(c.block()) * a.queries + i] * args.b.offset_factors[i];
        sum = sum_of_block<kThreads>(c, c.shared<double>(0), sum);
        if (c.thread() == 0) args.b.offsets[c.block()] = sum;
    }
};

/// Columns [column, column + kWidth) of a gradient; Of::rows: the row means of normalizers that need a sweep.
template <Of kOf, int kWidth>
struct Gradient {
    using Args = GradientArgs;
    static constexpr int kThreads = kTileThreads, kColumns = kWidth / 16, kSlabRows = 16, kSlabStride = kWidth + 4;
    static constexpr int kWeights = 2 * kSlotFloats, kRanges = kWeights + kTile * kWeightStride;
    static constexpr int kShared = 4 * (kRanges + BlockRows::kInts);
    static constexpr bool kOfKeys = kOf == Of::key || kOf == Of::value;

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int tiles = ((kOfKeys ? a.keys : a.queries) + kTile - 1) / kTile;
        const int own_heads = kOfKeys ? a.key_heads : a.heads, owner = c.block() % own_heads;
        const int own = (tiles - 1 - c.block() / own_heads) * kTile, group = a.heads / a.key_heads;
        const auto ranges = c.shared<int>(4 * kRanges);
        float o[8][kColumns] = {};
        double low = 0.0, high = 0.0;
        if (kOfKeys) {
            for (int head = owner * group; head < (owner + 1) * group; ++head) {
                for (int first = 0; first < a.rule.query_end; first += kTile) {
                    c.sync();
                    const BlockRows rows(c, a.rule, ranges, first);
                    if (rows.sees(own, head)) tile(args, c, rows, head, own, o, low, high);
                }
            }
        } else {
            const BlockRows rows(c, a.rule, ranges, own);
            if (rows.any()) {
                for (int key = rows.first_tile(owner); key < rows.end_key(); key = rows.next_tile(key + kTile, owner))
                    tile(args, c, rows, owner, key, o, low, high);
            }
        }
        if (kOf == Of::rows)
            write_rows(args, c, owner, own, low, high);
        else
            write(args, c, owner, own, o);
    }

    /// Scores of a row become weights (Of::value) or d loss / d s; Of::rows: sums of slope dA, slopes and dA.
    static HS_DEVICE void differentiate(const Args& args, const Context& c, int head, int i, float (&s)[4],
                                        const float (&u)[4], float& products, float& slopes, float& kept) {
        const HsAttention& a = args.b.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        const RowConstant constant = constant_of(a, head, i);
        const bool exists = i < a.queries;
        const float mean = kOf == Of::rows || kOf == Of::value || !exists || args.b.mean == nullptr
                               ? 0.0f
                               : args.b.mean[static_cast<long long>(head) * a.queries + i];
        products = slopes = kept = 0.0f;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float t = s[n];
            s[n] = 0.0f;
            if (t == kMasked) continue;
            const WeightAndSlope found = weigh_with_slope(c, normaliser, t, constant);
            const float gradient = normaliser == Normaliser::elastic && !(found.weight > 0.0f) ? 0.0f : u[n];
            if (kOf == Of::value) {
                s[n] = found.weight;
            } else if (kOf == Of::rows) {
                products += found.slope * gradient;
                slopes += found.slope;
                kept += gradient;
            } else {
                const float share = a.rule.soft_cap > 0.0f ? t / a.rule.soft_cap : 0.0f;
                s[n] = found.slope * (gradient - mean) * (1.0f - share * share);
            }
        }
    }

private:
    static HS_DEVICE void load(const Args& args, const Context& c, const Slices& slices, Shared<float> slot, int head,
                               int first, int key, int part, int value_slices) {
        const HsAttention& a = args.b.a;
        const int key_head = head / (a.heads / a.key_heads);
        if (part < slices.near) return load_part(c, a, slices, slot, head, key, first, part);
        const Rows gradient = rows_of(args.b.gradient, a.value_size, head);
        if (part < slices.near + value_slices) {
            load_slices(c, slot, rows_of(a.value, a.value_size, key_head), key, a.rule.key_begin, a.rule.key_end,
                        gradient, first, a.rule.query_end, part - slices.near, a.value_size);
            return;
        }
        const Rows from = kOf == Of::query ? rows_of(a.key, a.key_size, key_head)
                          : kOf == Of::key ? rows_of(a.query, a.key_size, head)
                                           : gradient;
        const int begin = kOf == Of::query ? a.rule.key_begin : 0;
        const int end = kOf == Of::query ? a.rule.key_end : a.rule.query_end;
        const int row = (kOf == Of::query ? key : first) + (part - slices.near - value_slices) * kSlabRows;
        for (int x = c.thread(); x < kSlabRows * (kWidth / 4); x += kThreads) {
            const int y = x / (kWidth / 4), column = x % (kWidth / 4) * 4;
            load_four(c, slot, y * kSlabStride + column, from, row + y, args.column + column, from.size,
                      row + y >= begin && row + y < end);
        }
    }

    static HS_DEVICE void tile(const Args& args, const Context& c, const BlockRows& rows, int head, int key,
                               float (&o)[8][kColumns], double& low, double& high) {
        const HsAttention& a = args.b.a;
        const Slices slices(a, false);
        const int tx = c.thread() % 16, ty = c.thread() / 16, first = rows.first();
        const int value_slices = kOf == Of::value ? 0 : (a.value_size + kSlice - 1) / kSlice;
        const int parts = slices.near + value_slices + (kOf == Of::rows ? 0 : kTile / kSlabRows);
        const auto ring = c.shared<float>(0), weights = c.shared<float>(4 * kWeights);
        int step = 0;
        c.sync();
        load(args, c, slices, ring, head, first, key, 0, value_slices);
        const auto advance = [&]() {
            c.wait_copies();
            c.sync();
            const auto ready = ring + step % 2 * kSlotFloats;
            if (++step < parts)
                load(args, c, slices, ring + step % 2 * kSlotFloats, head, first, key, step, value_slices);
            return ready;
        };
        float s[8][4] = {}, u[8][4] = {}, v[4][8];
        for (int part = 0; part < slices.near; ++part) multiply_slice<false>(c, advance(), s);
        for (int part = 0; part < value_slices; ++part) multiply_slice<false>(c, advance(), u);
        finish_scores<true>(c, a, rows, Second::none, head, key, rows.is_full(key), s, u);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const auto column = [&](int n) { return key + tx + 16 * n; };
            const int i = first + ty + 8 * r;
            if (kOf != Of::value && a.rule.dropout_threshold != 0U) drop_row(a.rule, head, i, column, u[r]);
            differentiate(args, c, head, i, s[r], u[r], v[0][r], v[1][r], v[2][r]);
            if (kOf == Of::value && a.rule.dropout_threshold != 0U) drop_row(a.rule, head, i, column, s[r]);
        }
        if (kOf == Of::rows) {
            float x, y;
#pragma unroll
            for (int r = 0; r < 8; ++r) v[3][r] = 0.0f;
            sum_by_halves(c, v, x, y);
            low += static_cast<double>(x);
            high += static_cast<double>(y);
            return;
        }
#pragma unroll
        for (int r = 0; r < 8; ++r)
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const int i = ty + 8 * r, j = tx + 16 * n;
                weights[kOfKeys ? j * kWeightStride + i : i * kWeightStride + j] = s[r][n];
            }
        for (int part = 0; part < kTile / kSlabRows; ++part)
            multiply_slab<kColumns, kSlabRows, kSlabStride>(c, weights, part * kSlabRows, advance(), o);
    }

    static HS_DEVICE void write_rows(const Args& args, const Context& c, int head, int first, double low, double high) {
        const HsAttention& a = args.b.a;
        const int tx = c.thread() % 16, i = first + c.thread() / 16 + 8 * (tx % 8);
        if (i >= a.queries) return;
        const long long at = static_cast<long long>(head) * a.queries + i;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        if (tx >= 8) {
            if (args.b.kept != nullptr) args.b.kept[at] = low;
            return;
        }
        double mean = low;
        if (normaliser != Normaliser::elastic) {
            double sum = high;
            if (a.rule.sink_logits != nullptr)
                sum += static_cast<double>(
                    weigh_with_slope(c, normaliser, a.rule.sink_logits[head], constant_of(a, head, i)).slope);
            mean = sum > 0.0 ? low / sum : 0.0;
        }
        args.b.mean[at] = static_cast<float>(mean);
    }

    static HS_DEVICE void write(const Args& args, const Context& c, int owner, int own, const float (&o)[8][kColumns]) {
        const HsAttention& a = args.b.a;
        const HsTarget& to = kOf == Of::query ? args.b.query : kOf == Of::key ? args.b.key : args.b.value;
        const int rows = kOfKeys ? a.keys : a.queries, size = kOf == Of::value ? a.value_size : a.key_size;
        const float factor = kOf == Of::value ? 1.0f : a.rule.query_factor * static_cast<float>(kLn2);
        const int tx = c.thread() % 16, ty = c.thread() / 16;
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const int row = own + ty + 8 * r;
            if (row >= rows) continue;
            const long long at =
                owner * static_cast<long long>(to.head_stride) + row * static_cast<long long>(to.row_stride);
#pragma unroll
            for (int n = 0; n < kColumns; ++n) {
                const int column = args.column + n / 4 * 64 + tx * 4 + n % 4;
                if (column < size) store_element(to.data, to.type, at + column, o[r][n] * factor);
            }
        }
    }
};

}  // namespace headscope::gpu
