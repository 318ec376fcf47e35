// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The end of a block of the first pass: constants and results of its rows, sums of the block, and O.

#include "kernels/gpu/device/attend_tile.h"
#include "kernels/summary/row_results.h"

namespace headscope::gpu {

template <Pass kPass, int kWidth, bool kStatistics, class Products>
struct AttendEnd : AttendTile<kPass, kWidth, kStatistics, Products> {
    using Base = AttendTile<kPass, kWidth, kStatistics, Products>;
    using Base::kColumns;
    using Base::kCounters;
    using Base::kCounts;
    using Base::kept_of;
    using Base::kLanes;
    using Base::kRows;
    using Base::kThreads;
    using Base::kWeights;
    using typename Base::Args;
    using typename Base::Grid;
    using typename Base::Pairs;
    using typename Base::Row;

    // Shared memory holds, from 0, sums of rows as float64 [4][64], factors of O [64], then results.
    static constexpr int kFactorBytes = 4 * 8 * kTile, kMaximumBytes = kFactorBytes + 4 * kTile;
    static constexpr int kMinimumBytes = kMaximumBytes + 4 * kTile, kResultBytes = kMinimumBytes + 4 * kTile;
    static constexpr int kTreeBytes = kResultBytes + 8 * 8 * kTile;
    static_assert(kTreeBytes + 8 * kThreads <= 4 * kWeights);

    static HS_DEVICE void finish(const Args& args, const Context& c, int head, int first, const Row& maximum,
                                 Row& minimum, const Row& z, double low, double high, const Pairs& pairs) {
        const bool measures = kStatistics;
        const int t = c.thread(), lane = t % kLanes;
        const auto sums = c.shared<double>(0);
        const auto maxima = c.shared<float>(kMaximumBytes), minima = c.shared<float>(kMinimumBytes);
        if (measures) {
#pragma unroll
            for (int r = 0; r < kRows; ++r)
#pragma unroll
                for (int x = 1; x < kLanes; x *= 2) minimum[r] = least(c.shuffle_xor(minimum[r], x), minimum[r]);
        }
        c.sync();
        if (kPass == Pass::online && !measures) {
            if (lane == 0)
#pragma unroll
                for (int r = 0; r < kRows; ++r) sums[Grid::row(t, r)] = static_cast<double>(z[r]);
        } else {
            const int row = Grid::row(t, lane % kRows), from = lane < kRows ? 0 : 2 * kTile;
            sums[from + row] = low;
            sums[from + kTile + row] = high;
        }
        if (lane == 0)
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                maxima[Grid::row(t, r)] = maximum[r];
                minima[Grid::row(t, r)] = minimum[r];
            }
        c.sync();
        if (t < kTile) finish_row(args, c, head, first + t, measures);
        if (measures) {
            finish_block(args, c, head, first, pairs);
        } else {
            c.sync();
        }
    }

    /// Constants, results and statistics of row t of the block.
    static HS_DEVICE void finish_row(const Args& args, const Context& c, int head, int i, bool measures) {
        const HsAttention& a = args.a;
        const Normaliser normaliser = static_cast<Normaliser>(a.normaliser);
        const int t = c.thread();
        const auto sums = c.shared<double>(0), results = c.shared<double>(kResultBytes);
        const auto factors = c.shared<float>(kFactorBytes);
        const float maximum = c.shared<float>(kMaximumBytes)[t], minimum = c.shared<float>(kMinimumBytes)[t];
        const float* sink = a.rule.sink_logits == nullptr ? nullptr : a.rule.sink_logits + head;
        const long long at = static_cast<long long>(head) * a.queries + i;
        const bool exists = i < a.queries;
        bool seen = maximum > kAllowed;
        kernels::RowResult row;
        double distance = 0.0;
        const double position = static_cast<double>(i + a.rule.query_offset);
        factors[t] = 1.0f;
        if (kPass == Pass::weigh) {
            RowConstant constant{0.0f, 0.0f, 0.0f};
            if (exists) constant = {a.shift[at], a.factor[at], 0.0f};
            if (measures) {
                row.mass = sums[t];
                row.entropy = sums[kTile + t];
                row.squares = sums[2 * kTile + t];
                distance = position * row.mass - sums[3 * kTile + t];
                seen = exists && args.s.minimum[at] <= -kMasked;
                if (sink != nullptr && seen)
                    row.sink_share = static_cast<double>(weigh(c, normaliser, *sink, 0.0f, constant));
            }
        } else {
            kernels::OnlineRow state;
            state.maximum = maximum;
            state.z = sums[t];
            if (kPass == Pass::sums || measures) state.t = sums[kTile + t];
            if (kPass == Pass::online && measures) state.f = sums[2 * kTile + t];
            state.pairs = seen ? 1 : 0;
            if (kPass == Pass::online) {
                row = kernels::summary::finish_softmax(state, sink);
                factors[t] =
                    seen ? static_cast<float>(exp2(static_cast<double>(maximum) - static_cast<double>(row.shift)) *
                                              static_cast<double>(row.factor))
                         : 0.0f;
                if (measures && seen)
                    distance =
                        position * row.mass - sums[3 * kTile + t] *
                                                  exp2(static_cast<double>(maximum) - static_cast<double>(row.shift)) *
                                                  one_over_total(state, sink, row);
                if (normaliser == Normaliser::elastic) row.entropy = row.squares = row.mass = distance = 0.0;
            } else if (is_taylor_rule(normaliser)) {
                row = kernels::summary::finish_taylor(state, is_per_order(normaliser));
            } else {
                row = kernels::summary::finish_sigmoid(state);
            }
            if (exists && args.constants != 0) {
                a.shift[at] = row.shift;
                a.factor[at] = row.factor;
            }
        }
        if (!measures) return;
        if (exists && kPass != Pass::weigh) {
            args.s.minimum[at] = seen ? minimum : infinity();
            args.s.constant[at] = row.constant;
        }
        double first_key = 0.0;
        if (exists && kPass != Pass::sums) {
            float* kept = kept_of(args, head, i);
            if (kPass == Pass::online) {
                const RowConstant constant{row.shift, row.factor, 0.0f};
                for (int x = 0; x <= args.s.distances; ++x)
                    kept[x] = kept[x] == kMasked ? 0.0f : weigh(c, Normaliser::softmax, kept[x], 0.0f, constant);
            }
            first_key = static_cast<double>(kept[0]);
            const bool final = kPass == Pass::weigh || normaliser == Normaliser::softmax;
            if (final && args.s.entropy != nullptr) {
                args.s.entropy[at] = static_cast<float>(row.entropy);
                args.s.squares[at] = static_cast<float>(row.squares);
                args.s.sink[at] = kept[0];
                args.s.distance[at] = static_cast<float>(distance);
            }
        }
        const bool counts = exists && seen;
        results[0 * kTile + t] = counts ? 1.0 : 0.0;
        results[1 * kTile + t] = exists ? row.entropy : 0.0;
        results[2 * kTile + t] = exists ? row.squares : 0.0;
        results[3 * kTile + t] = exists ? row.mass : 0.0;
        results[4 * kTile + t] = counts ? row.sink_share : 0.0;
        results[5 * kTile + t] = exists ? first_key : 0.0;
        results[6 * kTile + t] = exists ? distance : 0.0;
    }

    /// One over Z and the sink's term, from the shift that finish_softmax() chose.
    static HS_DEVICE double one_over_total(const kernels::OnlineRow& state, const float* sink,
                                           const kernels::RowResult& row) {
        const double shift = static_cast<double>(row.shift);
        double total = state.z * exp2(static_cast<double>(state.maximum) - shift);
        if (sink != nullptr) total += exp2(static_cast<double>(*sink) - shift);
        return 1.0 / total;
    }

    static HS_DEVICE void finish_block(const Args& args, const Context& c, int head, int first, const Pairs& pairs) {
        const HsStatistics& s = args.s;
        const int t = c.thread(), query_blocks = (args.a.queries + kTile - 1) / kTile;
        const auto results = c.shared<double>(kResultBytes);
        double* out =
            s.blocks + (static_cast<long long>(head) * query_blocks + first / kTile) * (HS_BLOCK_FIELDS + s.distances);
        c.sync();
        if (t < 7) {
            static_assert(HS_BLOCK_ROWS == 0 && HS_BLOCK_ENTROPY == 2 && HS_BLOCK_DISTANCE == 7);
            const int field = t == 0 ? 0 : t + 1;  // an array of fields would lie in local memory
            double sum = 0.0;
            for (int row = 0; row < kTile; ++row) sum += results[t * kTile + row];
            if (kPass != Pass::weigh || t > 0) out[field] = sum;
        }
        for (int x = t; x < s.distances; x += kThreads) {
            double sum = 0.0;
            for (int row = 0; kPass != Pass::sums && row < kTile && first + row < args.a.queries; ++row)
                sum += static_cast<double>(kept_of(args, head, first + row)[1 + x]);
            out[HS_BLOCK_FIELDS + x] = sum;
        }
        if (kPass == Pass::weigh) return;
        finish_scores_of_block(args, c, head, pairs, out);
    }

    static HS_DEVICE void finish_scores_of_block(const Args& args, const Context& c, int head, const Pairs& pairs,
                                                 double* out) {
        const HsStatistics& s = args.s;
        const int t = c.thread();
        const auto tree = c.shared<double>(kTreeBytes);
        const double number = static_cast<double>(pairs.count), center = static_cast<double>(pairs.center);
        const double count = sum_of_block<kThreads>(c, tree, number);
        const double sum = sum_of_block<kThreads>(c, tree, pairs.sum + number * center);
        const double mean = count > 0.0 ? sum / count : 0.0, delta = center - mean;
        const double deviations =
            sum_of_block<kThreads>(c, tree, pairs.squares + delta * (2.0 * pairs.sum + number * delta));
        if (t == 0) {
            const auto maxima = c.shared<float>(kMaximumBytes), minima = c.shared<float>(kMinimumBytes);
            float high = kMasked, low = kHuge;
            for (int row = 0; row < kTile; ++row) {
                const float x = maxima[row], y = minima[row];
                high = most(x, high);
                low = least(y, low);
            }
            // Scores that are NaN enter no extreme, but the sum keeps them.
            out[HS_BLOCK_PAIRS] = count;
            out[HS_BLOCK_SUM] = sum;
            out[HS_BLOCK_DEVIATIONS] = deviations;
            out[HS_BLOCK_MINIMUM] = sum == sum ? static_cast<double>(low) : sum;
            out[HS_BLOCK_MAXIMUM] = sum == sum ? static_cast<double>(high) : sum;
        }
        const auto counters = c.shared<unsigned>(4 * kCounters);
        for (int x = t; x < kCounts; x += kThreads) {
            const unsigned n = counters[x];
            if (n == 0U) continue;
            if (x >= HS_HISTOGRAM_BINS)
                c.add(s.above + static_cast<long long>(head) * 3 + x - HS_HISTOGRAM_BINS, n);
            else
                c.add(s.histogram + static_cast<long long>(head) * HS_HISTOGRAM_BINS + x, n);
        }
    }

    static HS_DEVICE void write_output(const Args& args, const Context& c, int head, int first,
                                       const float (&o)[kRows][kColumns]) {
        const HsTarget& to = args.a.output;
        const int t = c.thread();
        const auto factors = c.shared<float>(kFactorBytes);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = first + Grid::row(t, r);
            if (i >= args.a.queries) continue;
            const float factor = factors[Grid::row(t, r)];
            const long long row =
                head * static_cast<long long>(to.head_stride) + i * static_cast<long long>(to.row_stride);
#pragma unroll
            for (int n = 0; n < kColumns; ++n) {
                const int column = args.column + Grid::output_column(t, n);
                if (column < args.a.value_size) store_element(to.data, to.type, row + column, o[r][n] * factor);
            }
        }
    }
};

}  // namespace headscope::gpu
