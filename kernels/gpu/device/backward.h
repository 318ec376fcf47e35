// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Gradients of attention. Each result has one owner, so no sum depends on an order of blocks: a block owns 64 queries
// of a head, or 64 keys of a key head and walks the heads that read it. Scores and d loss / d A are computed again in
// each launch; columns beyond 128 are launches of their own. Products as in the forward pass (products.h).

#include "kernels/gpu/device/dropout.h"
#include "kernels/gpu/device/products.h"
#include "kernels/gpu/device/reduce.h"

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
template <Of kOf, int kWidth, class Products>
struct GradientBlock {
    using Args = GradientArgs;
    using Grid = typename Products::Grid;
    using Word = typename Products::Word;
    static constexpr int kThreads = kTileThreads, kLanes = Grid::kLanes, kRows = Grid::kRows;
    static constexpr int kColumns = kWidth / kLanes;  ///< of the result
    static constexpr int kRanges = 2 * kSlotFloats + Products::kWeightWords;
    static constexpr int kShared = 4 * (kRanges + BlockRows::kInts);
    static constexpr bool kOfKeys = kOf == Of::key || kOf == Of::value;
    using Tile = float[kRows][Grid::kColumns];
    using Result = float[kRows][kColumns];

    static HS_DEVICE void run(const Args& args, const Context& c) {
        const HsAttention& a = args.b.a;
        const int tiles = ((kOfKeys ? a.keys : a.queries) + kTile - 1) / kTile;
        const int own_heads = kOfKeys ? a.key_heads : a.heads, owner = c.block() % own_heads;
        const int own = (tiles - 1 - c.block() / own_heads) * kTile, group = a.heads / a.key_heads;
        const auto ranges = c.shared<int>(4 * kRanges);
        Products products(c, a, false);
        Result o = {};
        double low = 0.0, high = 0.0;
        if (kOfKeys) {
            for (int head = owner * group; head < (owner + 1) * group; ++head) {
                for (int first = 0; first < a.rule.query_end; first += kTile) {
                    c.sync();
                    const BlockRows rows(c, a.rule, ranges, first);
                    if (rows.sees(own, head)) tile(args, c, products, rows, head, own, o, low, high);
                }
            }
        } else {
            const BlockRows rows(c, a.rule, ranges, own);
            if (rows.any()) {
                products.hold_queries(owner, own);
                for (int key = rows.first_tile(owner); key < rows.end_key(); key = rows.next_tile(key + kTile, owner))
                    tile(args, c, products, rows, owner, key, o, low, high);
            }
        }
        if (kOf == Of::rows)
            write_rows(args, c, owner, own, low, high);
        else
            write(args, c, owner, own, o);
    }

    /// Scores of a row become weights (Of::value) or d loss / d s; Of::rows: sums of slope dA, slopes and dA.
    static HS_DEVICE void differentiate(const Args& args, const Context& c, int head, int i, float (&s)[Grid::kColumns],
                                        const float (&u)[Grid::kColumns], float& products, float& slopes, float& kept) {
        const HsAttention& a = args.b.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        const RowConstant constant = constant_of(a, head, i);
        const bool exists = i < a.queries;
        const float mean = kOf == Of::rows || kOf == Of::value || !exists || args.b.mean == nullptr
                               ? 0.0f
                               : args.b.mean[static_cast<long long>(head) * a.queries + i];
        products = slopes = kept = 0.0f;
#pragma unroll
        for (int n = 0; n < Grid::kColumns; ++n) {
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
    /// Parts of a tile: products of queries and keys, of d loss / d O and values, then the rows that weights multiply.
    static HS_DEVICE void load(const Args& args, const Products& products, Shared<Word> slot, int head, int first,
                               int key, int part) {
        const HsAttention& a = args.b.a;
        const int near = products.slices.near, value_parts = kOf == Of::value ? 0 : products.gradient_parts();
        if (part < near) return products.load(slot, head, key, first, part);
        if (part < near + value_parts)
            return products.load_gradients(slot, args.b.gradient, head, key, first, part - near);
        const RowTile rows = kOf == Of::query ? key_tile(a, a.key, a.key_size, head, key)
                             : kOf == Of::key
                                 ? RowTile{a.query, head, a.key_size, first, 0, a.rule.query_end}
                                 : RowTile{args.b.gradient, head, a.value_size, first, 0, a.rule.query_end};
        products.template load_rows<kWidth>(slot, rows, args.column, part - near - value_parts);
    }

    static HS_DEVICE void tile(const Args& args, const Context& c, const Products& products, const BlockRows& rows,
                               int head, int key, Result& o, double& low, double& high) {
        const HsAttention& a = args.b.a;
        const int t = c.thread(), first = rows.first();
        const int parts = products.slices.near + (kOf == Of::value ? 0 : products.gradient_parts()) +
                          (kOf == Of::rows ? 0 : Products::kRowParts);
        const auto ring = c.shared<Word>(0);
        int step = 0;
        c.sync();
        load(args, products, ring, head, first, key, 0);
        const auto advance = [&]() {
            c.wait_copies();
            c.sync();
            const auto ready = ring + step % 2 * kSlotFloats;
            if (++step < parts) load(args, products, ring + step % 2 * kSlotFloats, head, first, key, step);
            return ready;
        };
        Tile s = {}, u = {};
        float v[4][kRows];
        products.template multiply<false>(advance, s, u);
        if (kOf != Of::value) products.multiply_gradients(advance, u);
        finish_scores<true, Grid>(c, a, rows, Second::none, head, key, rows.is_full(key), s, u);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const auto column = [&](int n) { return key + Grid::column(t, n); };
            const int i = first + Grid::row(t, r);
            if (kOf != Of::value && a.rule.dropout_threshold != 0U) drop_row(a.rule, head, i, column, u[r]);
            differentiate(args, c, head, i, s[r], u[r], v[0][r], v[1][r], v[2][r]);
            if (kOf == Of::value && a.rule.dropout_threshold != 0U) drop_row(a.rule, head, i, column, s[r]);
        }
        if (kOf == Of::rows) {
            float x, y;
#pragma unroll
            for (int r = 0; r < kRows; ++r) v[3][r] = 0.0f;
            sum_by_halves(c, v, x, y);
            low += static_cast<double>(x);
            high += static_cast<double>(y);
            return;
        }
        products.template add_rows<kWidth, kOfKeys>(advance, s, o);
    }

    static HS_DEVICE void write_rows(const Args& args, const Context& c, int head, int first, double low, double high) {
        const HsAttention& a = args.b.a;
        const int lane = c.thread() % kLanes, i = first + Grid::row(c.thread(), lane % kRows);
        if (i >= a.queries) return;
        const long long at = static_cast<long long>(head) * a.queries + i;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        if (lane >= kLanes / 2) {
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

    static HS_DEVICE void write(const Args& args, const Context& c, int owner, int own, const Result& o) {
        const HsAttention& a = args.b.a;
        const HsTarget& to = kOf == Of::query ? args.b.query : kOf == Of::key ? args.b.key : args.b.value;
        const int rows = kOfKeys ? a.keys : a.queries, size = kOf == Of::value ? a.value_size : a.key_size;
        const float factor = kOf == Of::value ? 1.0f : a.rule.query_factor * static_cast<float>(kLn2);
        const int t = c.thread();
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int row = own + Grid::row(t, r);
            if (row >= rows) continue;
            const long long at =
                owner * static_cast<long long>(to.head_stride) + row * static_cast<long long>(to.row_stride);
#pragma unroll
            for (int n = 0; n < kColumns; ++n) {
                const int column = args.column + Grid::output_column(t, n);
                if (column < size) store_element(to.data, to.type, at + column, o[r][n] * factor);
            }
        }
    }
};

template <Of kOf, int kWidth>
struct Gradient : GradientBlock<kOf, kWidth, FmaProducts> {};

/// On tensor cores.
template <Of kOf, int kWidth>
struct GradientMma : GradientBlock<kOf, kWidth, MmaProducts> {};

}  // namespace headscope::gpu
