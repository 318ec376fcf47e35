// SPDX-License-Identifier: GPL-3.0-or-later
// The first pass: row constants, and everything that can be said of scores. Tiles of kRows queries by kTileKeys keys,
// key blocks outside and groups of rows inside, so that a block of packed keys is read from the cache.
#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/visibility.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/pass_one.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/normalisers-inl.h"
#include "kernels/cpu/attention/scores-inl.h"
#include "kernels/cpu/attention/second_order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

struct Extremes {
    float maximum, minimum, sum;
};

template <bool kMaskedTile, bool kStatistics>
HWY_INLINE Extremes FindExtremes(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V high = hn::Set(d, -kMasked);
    V maximum[2] = {hn::Set(d, kMasked), hn::Set(d, kMasked)}, minimum[2] = {high, high};
    V sum[2] = {hn::Zero(d), hn::Zero(d)};
    const auto step = [&](std::int64_t c, int set) HWY_ATTR {
        V x = hn::Load(d, t + c);
        maximum[set] = hn::Max(x, maximum[set]);
        if constexpr (kStatistics) {
            if constexpr (kMaskedTile) {
                const auto allowed = Allowed(d, x);
                minimum[set] = hn::Min(hn::IfThenElse(allowed, x, high), minimum[set]);
                x = hn::IfThenElseZero(allowed, x);
            } else {
                minimum[set] = hn::Min(x, minimum[set]);
            }
            sum[set] = hn::Add(sum[set], x);
        }
    };
    for (std::int64_t c = begin; c < end; c += 2 * lanes) {
        step(c, 0);
        step(c + lanes, 1);
    }
    return {hn::GetLane(hn::MaxOfLanes(d, hn::Max(maximum[0], maximum[1]))),
            hn::GetLane(hn::MinOfLanes(d, hn::Min(minimum[0], minimum[1]))), Sum(d, hn::Add(sum[0], sum[1]))};
}

/// Squared deviations alone, for normalisers without an online sweep.
template <bool kMaskedTile>
HWY_INLINE float SquaredDeviations(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, float mean) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V sum = hn::Zero(d);
    for (std::int64_t c = begin; c < end; c += lanes) {
        const V x = hn::Load(d, t + c);
        V w = hn::Sub(x, hn::Set(d, mean));
        if constexpr (kMaskedTile) w = hn::IfThenElseZero(Allowed(d, x), w);
        sum = hn::MulAdd(w, w, sum);
    }
    return Sum(d, sum);
}

HWY_INLINE void CountAbove(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, std::uint64_t* above) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const float log2e = static_cast<float>(kLog2E);
    const V bound0 = hn::Set(d, 10.0f * log2e), bound1 = hn::Set(d, 100.0f * log2e),
            bound2 = hn::Set(d, 1000.0f * log2e);
    for (std::int64_t c = begin; c < end; c += lanes) {
        const V x = hn::Load(d, t + c);
        const V magnitude = hn::IfThenElseZero(Allowed(d, x), hn::Abs(x));
        const auto first = hn::Gt(magnitude, bound0);
        if (hn::AllFalse(d, first)) continue;
        above[0] += hn::CountTrue(d, first);
        above[1] += hn::CountTrue(d, hn::Gt(magnitude, bound1));
        above[2] += hn::CountTrue(d, hn::Gt(magnitude, bound2));
    }
}

/// Counts a row's scores; whole vectors inside +-8 by their quarters, the others one by one.
HWY_INLINE void CountRow(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, std::uint32_t* counts) {
    const F32 d;
    const hn::RebindToSigned<F32> di;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V quarters = hn::Set(d, static_cast<float>(4.0 * kLn2)), limit = hn::Set(d, 0.5f * kLinearBins);
    HWY_ALIGN std::int32_t bins[hn::MaxLanes(d)];
    std::uint32_t* middle = counts + kOuterBins + kLinearBins / 2;
    for (std::int64_t c = begin; c < end; c += lanes) {
        const V x = hn::Mul(hn::Load(d, t + c), quarters);
        if (!hn::AllTrue(d, hn::Lt(hn::Abs(x), limit))) {
            count_scores(t + c, lanes, counts);
            continue;
        }
        hn::Store(hn::ConvertTo(di, hn::Floor(x)), di, bins);
        for (std::int64_t n = 0; n < lanes; ++n) ++middle[bins[n]];
    }
}

/// A row's tile: extremes and moments of scores, and the sums where the normaliser has such. `u`: the row of its second
/// order's own scores, if it has them.
template <class N, bool kMaskedTile, bool kStatistics>
HWY_INLINE void SweepRow(const float* HWY_RESTRICT t, const float* HWY_RESTRICT u, std::int64_t begin, std::int64_t end,
                         std::int64_t pairs, OnlineRow& row, float& row_minimum, BlockScores* scores) {
    if (pairs == 0) return;
    const Extremes found = FindExtremes<kMaskedTile, kStatistics>(t, begin, end);
    const float mean = found.sum / static_cast<float>(pairs);
    if (row.pairs == 0 || (N::kTraits.sweep == Sweep::sums && found.maximum > row.maximum))
        row.maximum = found.maximum;
    else if (found.maximum > row.maximum)
        raise_maximum(row, found.maximum);
    row.pairs += pairs;
    float squared_deviations = 0.0f;
    if constexpr (N::kTraits.sweep == Sweep::online) {
        const TileSums sums = N::template Add<kMaskedTile, kStatistics>(t, begin, end, row.maximum, mean);
        row.z += double{sums.z};
        row.t += double{sums.t};
        row.f += double{sums.f};
        squared_deviations = sums.squared_deviations;
    } else if constexpr (N::kTraits.sweep == Sweep::sums) {
        const TileSums sums = N::template Add<kStatistics>(t, u, begin, end, mean);
        row.z += double{sums.z};
        row.t += double{sums.t};
        squared_deviations = sums.squared_deviations;
    } else if constexpr (kStatistics) {
        squared_deviations = SquaredDeviations<kMaskedTile>(t, begin, end, mean);
    }
    if constexpr (kStatistics) {
        row_minimum = HWY_MIN(row_minimum, found.minimum);
        scores->sum += double{found.sum};
        // Moved from the tile's mean to 0 in float64, which has the digits to spare whatever the scores' offset.
        const double center = double{mean};
        scores->squared_deviations +=
            double{squared_deviations} + center * (2.0 * double{found.sum} - static_cast<double>(pairs) * center);
        const float bound = 10.0f * static_cast<float>(kLog2E);
        if (found.maximum > bound || found.minimum < -bound) CountAbove(t, begin, end, scores->above);
    }
}

template <class N, bool kStatistics>
class BlockPass {
public:
    explicit BlockPass(const PassOneTask& task) : task_(task), s_(*task.sequence) {
        groups_ = (task.rows + kRows - 1) / kRows;
        queries_ = task.scratch;
        scores_ = queries_ + groups_ * kRows * pad_to_line(s_.key_size);
        stride_ = N::kTraits.sweep == Sweep::panel ? (s_.keys + kTileKeys - 1) / kTileKeys * kTileKeys : kTileKeys;
        second_ = scores_ + kRows * stride_;
    }

    void Run() {
        find_rows(s_, task_.first_row, task_.rows, block_);
        for (int r = 0; r < task_.rows; ++r) minimum_[r] = -kMasked;
        for (int g = 0; g < groups_; ++g) {
            PackQueries(s_, task_.head, task_.first_row + g * kRows, RowsOf(g), QueriesOf(g));
        }
        const std::int64_t first = block_.first_key / kTileKeys * kTileKeys;
        if constexpr (N::kTraits.sweep == Sweep::panel) {
            for (int g = 0; g < groups_; ++g) {
                FillMasked(RowsOf(g));
                for (std::int64_t key = first; key < block_.last_key; key += kTileKeys) {
                    if (Cancelled()) return;
                    Tile(g, key, scores_ + key);
                }
                for (int r = g * kRows; r < g * kRows + RowsOf(g); ++r) {
                    Finish(r, N::Search(scores_ + (r - g * kRows) * stride_, stride_, rows_[r].maximum, rows_[r].pairs,
                                        SinkLogit()));
                }
            }
        } else {
            for (std::int64_t key = first; key < block_.last_key; key += kTileKeys) {
                if (Cancelled()) return;
                for (int g = 0; g < groups_; ++g) Tile(g, key, scores_);
            }
            for (int r = 0; r < task_.rows; ++r) Finish(r, N::Finish(rows_[r], SinkLogit()));
        }
        if constexpr (kStatistics) FinishBlock();
    }

private:
    int RowsOf(int g) const { return HWY_MIN(kRows, task_.rows - g * kRows); }
    float* QueriesOf(int g) const { return queries_ + g * kRows * pad_to_line(s_.key_size); }
    bool Cancelled() const { return s_.cancel != nullptr && s_.cancel->load(std::memory_order_relaxed); }
    const float* SinkLogit() const { return s_.sink_logits == nullptr ? nullptr : s_.sink_logits + task_.head; }

    void FillMasked(int rows) {
        const F32 d;
        const auto n = static_cast<std::int64_t>(rows) * stride_;
        for (std::int64_t c = 0; c < n; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            hn::Store(hn::Set(d, kMasked), d, scores_ + c);
        }
    }

    void Tile(int g, std::int64_t key, float* scores) {
        const int row = g * kRows, count = RowsOf(g);
        const std::int64_t width = HWY_MIN(kTileKeys, s_.keys - key);
        const TileView view = view_tile(s_, block_, row, row + count, key, width);
        if (!view.any || !head_sees(s_, task_.head, block_, row, row + count, key, key + width)) return;
        const Columns columns = RoundToPanels(view);
        std::int64_t pairs[kRows];
        ScoreTile(s_, task_.head, block_, row, count, QueriesOf(g), key, columns, scores, stride_, pairs);
        if constexpr (N::kTraits.diagonal)
            ScoreSquares(s_, task_.head, QueriesOf(g), key, columns, second_ + kRows * kTileKeys, second_);
        for (int r = 0; r < count; ++r) {
            const float* t = scores + r * stride_;
            const float* u = second_ + r * kTileKeys;
            OnlineRow& state = rows_[row + r];
            float& minimum = minimum_[row + r];
            if (columns.masked)
                SweepRow<N, true, kStatistics>(t, u, columns.begin, columns.end, pairs[r], state, minimum, &sums_);
            else
                SweepRow<N, false, kStatistics>(t, u, columns.begin, columns.end, pairs[r], state, minimum, &sums_);
            if constexpr (kStatistics) {
                const std::int64_t i = block_.first + row + r;
                if (task_.histogram != nullptr && i % task_.histogram_step == task_.histogram_step - 1) {
                    CountRow(t, columns.begin, columns.end, counts_);
                }
            }
        }
    }

    void Finish(int r, const RowResult& result) {
        const std::int64_t i = task_.first_row + r;
        task_.constants.shift[i] = result.shift;
        task_.constants.factor[i] = result.factor;
        if (task_.row_constant != nullptr) task_.row_constant[i] = result.constant;
        if constexpr (kStatistics) {
            const bool seen = rows_[r].pairs > 0;
            task_.constants.minimum[i] = seen ? minimum_[r] : kInfinity;
            if (task_.query_entropy != nullptr) task_.query_entropy[i] = static_cast<float>(result.entropy);
            if (task_.query_squares != nullptr) task_.query_squares[i] = static_cast<float>(result.squares);
            sums_.rows += seen ? 1 : 0;
            sums_.pairs += rows_[r].pairs;
            sums_.entropy += result.entropy;
            sums_.squares += result.squares;
            sums_.mass += result.mass;
            sums_.virtual_sink += result.sink_share;
        }
    }

    void FinishBlock() {
        if (sums_.pairs > 0) {
            sums_.squared_deviations -= sums_.sum * (sums_.sum / static_cast<double>(sums_.pairs));
            sums_.minimum = -kMasked;
            sums_.maximum = kMasked;
            for (int r = 0; r < task_.rows; ++r) {
                if (rows_[r].pairs == 0) continue;
                sums_.minimum = HWY_MIN(sums_.minimum, minimum_[r]);
                sums_.maximum = HWY_MAX(sums_.maximum, rows_[r].maximum);
            }
            // Scores that are no numbers enter no extreme, but the sum keeps them: there is no minimum then.
            if (sums_.sum != sums_.sum) sums_.minimum = sums_.maximum = static_cast<float>(sums_.sum);
        }
        *task_.scores = sums_;
        if (task_.histogram != nullptr) add_counts(counts_, *task_.histogram);
    }

    const PassOneTask& task_;
    const Sequence& s_;
    int groups_ = 0;
    float *queries_ = nullptr, *scores_ = nullptr, *second_ = nullptr;
    std::int64_t stride_ = 0;
    BlockRows block_;
    OnlineRow rows_[kMaxBlockRows];
    float minimum_[kMaxBlockRows];
    BlockScores sums_;
    std::uint32_t counts_[kHistogramBins] = {};
};

template <class N>
struct FirstPass {
    static void Run(const PassOneTask& task) {
        if (task.scores != nullptr)
            BlockPass<N, true>(task).Run();
        else
            BlockPass<N, false>(task).Run();
    }
};

void PassOne(const PassOneTask& task) {
    RunNormaliser<FirstPass>(task);
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(PassOne);

void pass_one(const PassOneTask& task) {
    HWY_DYNAMIC_DISPATCH(PassOne)(task);
}

std::int64_t pass_one_scratch(const Sequence& s, std::int64_t rows, bool panel) {
    const std::int64_t padded_rows = (rows + kMostRows - 1) / kMostRows * kMostRows;
    const std::int64_t stride = panel ? (s.keys + kTileKeys - 1) / kTileKeys * kTileKeys : kTileKeys;
    return padded_rows * pad_to_line(s.key_size) + kMostRows * stride + second_order_scratch(s);
}

std::int64_t second_order_scratch(const Sequence& s) {
    return kMostRows * kTileKeys + (kMostRows + kMostPanel) * pad_to_line(s.key_size);
}

}  // namespace headscope::kernels::cpu
#endif
