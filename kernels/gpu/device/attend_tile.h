// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Work of the first pass on one tile of scores.

#include "kernels/gpu/device/products.h"
#include "kernels/gpu/device/reduce.h"

namespace headscope::gpu {

enum class Pass : std::uint8_t {
    online,  ///< softmax with O; the exponentials of elastic weights
    sums,    ///< constants of the other normalizers, statistics of scores; rows of scores for a search
    weigh    ///< O and statistics of weights from constants
};

struct AttendArgs {
    HsAttention a;
    HsStatistics s;
    long long begin;  ///< of the blocks (query block x head, later queries first) of this launch
    int column;       ///< first column of O
    int constants;    ///< the launch writes constants; those with statistics always do
};

template <Pass kPass, int kWidth, bool kStatistics, class Products>
struct AttendTile {
    using Args = AttendArgs;
    using Grid = typename Products::Grid;
    using Tile = float[Grid::kRows][Grid::kColumns];
    using Row = float[Grid::kRows];
    static constexpr int kThreads = kTileThreads, kLanes = Grid::kLanes, kRows = Grid::kRows;
    static constexpr int kColumns = kWidth / kLanes;  ///< of O
    static constexpr int kWeights = 2 * kSlotFloats, kRanges = kWeights + kTile * kWeightStride;
    static constexpr int kCounters = kRanges + BlockRows::kInts;
    static constexpr int kCounts = HS_HISTOGRAM_BINS + 3;
    static constexpr int kShared = 4 * (kCounters + kCounts + 3);

    /// Sums of a thread's pairs: scores from `center`, which is its first score.
    struct Pairs {
        int count = 0;
        float center = 0.0f;
        double sum = 0.0, squares = 0.0;
    };

    static HS_DEVICE float* kept_of(const Args& args, int head, int i) {
        return args.s.kept + (static_cast<long long>(head) * args.a.queries + i) * (1 + args.s.distances);
    }

    static HS_DEVICE float* panel_of(const Args& args, const Context& c, int row) {
        return args.a.panel + (static_cast<long long>(c.block()) * kTile + row) * args.a.keys;
    }

    static HS_DEVICE void measure_scores(const Args& args, const Context& c, int first, const Tile& s, Row& minimum,
                                         Pairs& pairs) {
        const auto counters = c.shared<unsigned>(4 * kCounters);
        const int t = c.thread();
        float sum = 0.0f, squares = 0.0f, size = 0.0f;
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                const float x = s[r][n];
                if (x == kMasked) continue;
                if (pairs.count == 0) pairs.center = x;
                ++pairs.count;
                minimum[r] = least(x, minimum[r]);
                const float from_center = x - pairs.center;
                sum += from_center;
                squares += from_center * from_center;
                size = most(fabsf(x), size);
            }
        pairs.sum += static_cast<double>(sum);
        pairs.squares += static_cast<double>(squares);
        constexpr float kBound = 10.0f * static_cast<float>(kLog2E);
        if (size > kBound) {
#pragma unroll
            for (int r = 0; r < kRows; ++r)
#pragma unroll
                for (int n = 0; n < Grid::kColumns; ++n) {
                    const float x = fabsf(s[r][n]);
                    if (s[r][n] == kMasked || !(x > kBound)) continue;
                    c.add(counters, HS_HISTOGRAM_BINS, 1U);
                    if (x > 10.0f * kBound) c.add(counters, HS_HISTOGRAM_BINS + 1, 1U);
                    if (x > 100.0f * kBound) c.add(counters, HS_HISTOGRAM_BINS + 2, 1U);
                }
        }
        if (args.s.histogram == nullptr) return;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = first + Grid::row(t, r);
            if (i % args.s.histogram_step != args.s.histogram_step - 1) continue;
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                if (s[r][n] == kMasked) continue;
                const int bin = bin_of(args.s.edges, static_cast<double>(s[r][n]) * kLn2);
                if (bin >= 0) c.add(counters, bin, 1U);
            }
        }
    }

    /// Stores the score, or weight, of the first key and of the local distances for the end of the row.
    static HS_DEVICE void keep(const Args& args, int head, int first, int key, int t, const Tile& s) {
        const HsRule& rule = args.a.rule;
        const int offset = rule.query_offset;
        bool near = rule.key_begin >= key && rule.key_begin < key + kTile;
        for (int x = 0; x < args.s.distances; ++x) {
            const int lowest = first + offset - args.s.local[x];
            near = near || (lowest < key + kTile && lowest + kTile > key);
        }
        if (!near) return;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int i = first + Grid::row(t, r);
            if (i >= args.a.queries) continue;
            float* kept = kept_of(args, head, i);
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                const int j = key + Grid::column(t, n);
                if (j == rule.key_begin) kept[0] = s[r][n];
                for (int x = 0; x < args.s.distances; ++x)
                    if (i + offset - args.s.local[x] == j) kept[1 + x] = s[r][n];
            }
        }
    }

    static HS_DEVICE void store_panel(const Args& args, const Context& c, int key, const Tile& s) {
        const int t = c.thread();
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            float* panel = panel_of(args, c, Grid::row(t, r));
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                const int j = key + Grid::column(t, n);
                if (j < args.a.keys && s[r][n] != kMasked) panel[j] = s[r][n];
            }
        }
    }

    static HS_DEVICE void raise_maxima(const Context& c, const Tile& s, Row& maximum, Row& shrink, Row& gap) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            float high = kMasked;
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) high = most(s[r][n], high);  // NaN is no maximum
#pragma unroll
            for (int x = 1; x < kLanes; x *= 2) high = most(c.shuffle_xor(high, x), high);
            const float next = most(high, maximum[r]);
            gap[r] = most(maximum[r] - next, -150.0f);
            shrink[r] = c.exp2(gap[r]);
            maximum[r] = next;
        }
    }

    /// Scores become 2^(t - maximum); v: Z, T, F and the sum of columns of a tile.
    static HS_DEVICE void exponentials(const Context& c, bool full, Tile& s, Row& maximum, Row& shrink, Row& gap,
                                       float (&v)[4][kRows]) {
        raise_maxima(c, s, maximum, shrink, gap);
        const float from = static_cast<float>(Grid::column(c.thread(), 0));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            float z = 0.0f, t = 0.0f, f = 0.0f, d = 0.0f;
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                float u = s[r][n] - maximum[r];
                if (u < -127.0f) u = -127.0f;
                float p = c.exp2(u);
                if (!full && s[r][n] == kMasked) p = 0.0f;
                z += p;
                if (kStatistics) {
                    t += p * u;
                    f += p * p;
                    d += p * static_cast<float>(Grid::column(0, n));
                }
                s[r][n] = p;
            }
            v[0][r] = z;
            v[1][r] = t;
            v[2][r] = f;
            v[3][r] = z * from + d;
        }
    }

    /// v: the sum of the terms; by order, of s and of the second order.
    static HS_DEVICE void taylor_sums(Normaliser normaliser, const Tile& s, const Tile& u, float (&v)[4][kRows]) {
        const bool per_order = is_per_order(normaliser), diagonal = is_diagonal(normaliser);
        const bool taylor = is_taylor_rule(normaliser);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            v[0][r] = v[1][r] = v[2][r] = v[3][r] = 0.0f;
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                if (s[r][n] == kMasked || !taylor) continue;
                const float x = s[r][n] * kFirstOrder;
                const float second = diagonal ? u[r][n] : s[r][n] * kSecondOrder * s[r][n];
                if (per_order) {
                    v[0][r] += x;
                    v[1][r] += second;
                } else {
                    v[0][r] += 1.0f + (x + second);
                }
            }
        }
    }

    /// Scores become weights; v: mass, entropy, squares and the sum of columns.
    static HS_DEVICE void weigh_tile(const Context& c, Normaliser normaliser, bool full, Tile& s, const Tile& u,
                                     const RowConstant (&constants)[kRows], float (&v)[4][kRows]) {
        const float from = static_cast<float>(Grid::column(c.thread(), 0));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            float mass = 0.0f, entropy = 0.0f, squares = 0.0f, d = 0.0f;
#pragma unroll
            for (int n = 0; n < Grid::kColumns; ++n) {
                float p = 0.0f;
                if (full || s[r][n] != kMasked) p = weigh(c, normaliser, s[r][n], u[r][n], constants[r]);
                if (kStatistics) {
                    mass += p;
                    squares += p * p;
                    // A negative weight makes the entropy NaN.
                    entropy -= p < 0.0f ? nan_value() : p * logf(p < kSmallestNormal ? kSmallestNormal : p);
                    d += p * static_cast<float>(Grid::column(0, n));
                }
                s[r][n] = p;
            }
            v[0][r] = mass;
            v[1][r] = entropy;
            v[2][r] = squares;
            v[3][r] = mass * from + d;
        }
    }

    /// Adds a tile's sums to those of the row that this lane keeps.
    static HS_DEVICE void join(const Context& c, int key, float shrink, float gap, float x, float y, double& low,
                               double& high) {
        const float mass = c.shuffle_xor(x, kLanes / 2);  // Z, or the mass, for the lanes that keep sums of columns
        const bool first = c.thread() % kLanes < kLanes / 2;
        if (kPass == Pass::online) {
            const double a = static_cast<double>(shrink);
            if (first) {
                high = a * (high + static_cast<double>(gap) * low) + static_cast<double>(y);
                low = a * low + static_cast<double>(x);
            } else {
                low = a * a * low + static_cast<double>(x);
                high = a * high + static_cast<double>(y) + static_cast<double>(key) * static_cast<double>(mass);
            }
            return;
        }
        low += static_cast<double>(x);
        high += static_cast<double>(y);
        if (kPass == Pass::weigh && !first) high += static_cast<double>(key) * static_cast<double>(mass);
    }
};

}  // namespace headscope::gpu
