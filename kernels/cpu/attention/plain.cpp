// SPDX-License-Identifier: GPL-3.0-or-later
// O = softmax(S) V in one pass when nothing is measured: a row's output is rescaled whenever its maximum rises, as in
// Milakov and Gimelshein 2018 (arXiv 1805.02867) and Rabe and Staats 2021 (arXiv 2112.05682). Taylor weights need no
// maximum: their terms are summed as they are; sigmoids have no sum.
#include <string>

#include "kernels/backend.h"
#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/attention/tasks.h"
#include "kernels/cpu/attention/visibility.h"
#include "kernels/normaliser.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/plain.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/dropout-inl.h"
#include "kernels/cpu/attention/normaliser/sigmoid-inl.h"
#include "kernels/cpu/attention/normaliser/taylor-inl.h"
#include "kernels/cpu/attention/scores-inl.h"
#include "kernels/cpu/attention/values-inl.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE float RowMaximum(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end) {
    const F32 d;
    V maximum = hn::Set(d, kMasked);
    for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        maximum = hn::Max(hn::Load(d, t + c), maximum);
    }
    return hn::GetLane(hn::MaxOfLanes(d, maximum));
}

/// Scores to 2^(t - maximum), in place; returns their sum.
HWY_INLINE float Exponentiate(float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, float maximum) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V shift = hn::Set(d, maximum);
    V sum[2] = {hn::Zero(d), hn::Zero(d)};
    for (std::int64_t c = begin; c < end; c += 2 * lanes) {
        const V left = PowerOfTwo(d, hn::Sub(hn::Load(d, t + c), shift));
        const V right = PowerOfTwo(d, hn::Sub(hn::Load(d, t + c + lanes), shift));
        hn::Store(left, d, t + c);
        hn::Store(right, d, t + c + lanes);
        sum[0] = hn::Add(sum[0], left);
        sum[1] = hn::Add(sum[1], right);
    }
    return Sum(d, hn::Add(sum[0], sum[1]));
}

HWY_INLINE void Scale(float* HWY_RESTRICT row, std::int64_t size, float factor) {
    const F32 d;
    for (std::int64_t c = 0; c < size; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        hn::Store(hn::Mul(hn::Load(d, row + c), hn::Set(d, factor)), d, row + c);
    }
}

/// Scores to their Taylor terms, in place; returns the terms' sum.
HWY_INLINE float SumTerms(float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const V one = hn::Set(d, 1.0f);
    const RowVectors row{one, one, hn::Zero(d)};
    V sum[2] = {hn::Zero(d), hn::Zero(d)};
    for (std::int64_t c = begin; c < end; c += 2 * lanes) {
        const V left = Taylor::Weight(d, hn::Load(d, t + c), row);
        const V right = Taylor::Weight(d, hn::Load(d, t + c + lanes), row);
        hn::Store(left, d, t + c);
        hn::Store(right, d, t + c + lanes);
        sum[0] = hn::Add(sum[0], left);
        sum[1] = hn::Add(sum[1], right);
    }
    return Sum(d, hn::Add(sum[0], sum[1]));
}

/// Scores to their sigmoids, in place.
HWY_INLINE void TakeSigmoids(float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end) {
    const F32 d;
    for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d)))
        hn::Store(SigmoidOfPower(d, hn::Load(d, t + c)), d, t + c);
}

template <Terms kTerms>
class PlainPass {
public:
    explicit PlainPass(const PlainTask& task) : task_(task), s_(*task.sequence) {
        groups_ = (task.rows + kRows - 1) / kRows;
        query_stride_ = kRows * pad_to_line(s_.key_size);
        value_stride_ = pad_to_line(s_.value_size);
        queries_ = task.scratch;
        output_ = queries_ + groups_ * query_stride_;
        value_ = output_ + groups_ * kRows * value_stride_;
        scores_ = value_ + kTileKeys * value_stride_;
    }

    void Run() {
        find_rows(s_, task_.first_row, task_.rows, block_);
        for (int g = 0; g < groups_; ++g) {
            PackQueries(s_, task_.head, task_.first_row + g * kRows, RowsOf(g), queries_ + g * query_stride_);
        }
        for (std::int64_t x = 0; x < groups_ * kRows * value_stride_; ++x) output_[x] = 0.0f;
        for (std::int64_t x = 0; x < kRows * kTileKeys; ++x) scores_[x] = 0.0f;
        for (std::int64_t key = block_.first_key / kTileKeys * kTileKeys; key < block_.last_key; key += kTileKeys) {
            if (s_.cancel != nullptr && s_.cancel->load(std::memory_order_relaxed)) return;
            KeyBlock(key);
        }
        WriteOutput();
    }

private:
    int RowsOf(int g) const { return HWY_MIN(kRows, task_.rows - g * kRows); }

    void KeyBlock(std::int64_t key) {
        const std::int64_t width = HWY_MIN(kTileKeys, s_.keys - key);
        const TileView all = view_tile(s_, block_, 0, task_.rows, key, width);
        ForSeenColumns(s_, task_.head, block_, 0, task_.rows, key, all, [&](const Columns& columns) HWY_ATTR {
            PackValues(s_, task_.head / (s_.heads / s_.key_heads), key, width, columns.begin, columns.end, value_,
                       value_stride_);
        });
        for (int g = 0; g < groups_; ++g) {
            const int row = g * kRows, count = RowsOf(g);
            const TileView view = view_tile(s_, block_, row, row + count, key, width);
            ForSeenColumns(s_, task_.head, block_, row, count, key, view,
                           [&](const Columns& columns) HWY_ATTR { Tile(g, key, columns); });
        }
    }

    void Tile(int g, std::int64_t key, const Columns& columns) {
        const int row = g * kRows, count = RowsOf(g);
        float* output = output_ + row * value_stride_;
        std::int64_t pairs[kRows];
        ScoreTile(s_, task_.head, block_, row, count, queries_ + g * query_stride_, key, columns, scores_, kTileKeys,
                  pairs);
        for (int r = 0; r < count; ++r) {
            float* t = scores_ + r * kTileKeys;
            OnlineRow& state = rows_[row + r];
            if constexpr (kTerms == Terms::sigmoid) {
                state.pairs += pairs[r];
                TakeSigmoids(t, columns.begin, columns.end);
                continue;
            }
            if constexpr (kTerms == Terms::taylor) {
                state.pairs += pairs[r];
                state.z += double{SumTerms(t, columns.begin, columns.end)};
                continue;
            }
            if (pairs[r] > 0) {
                const float maximum = RowMaximum(t, columns.begin, columns.end);
                if (state.pairs == 0) {
                    state.maximum = maximum;
                } else if (maximum > state.maximum) {
                    Scale(output + r * value_stride_, value_stride_, raise_maximum(state, maximum));
                }
                state.pairs += pairs[r];
            }
            state.z += double{Exponentiate(t, columns.begin, columns.end, state.maximum)};
        }
        for (int r = 0; r < count; ++r)
            Drop(s_, task_.head, task_.first_row + row + r, key, columns.begin, columns.end, scores_ + r * kTileKeys);
        MultiplyValues(scores_, value_, columns.begin, columns.end, value_stride_, output);
    }

    static RowResult Finish(const OnlineRow& row, const float* sink) {
        if constexpr (kTerms == Terms::taylor) return finish_taylor(row, false);
        if constexpr (kTerms == Terms::sigmoid) return finish_sigmoid(row);
        return finish_softmax(row, sink);
    }

    void WriteOutput() {
        const float* sink = s_.sink_logits == nullptr ? nullptr : s_.sink_logits + task_.head;
        const F32 d;
        for (int r = 0; r < task_.rows; ++r) {
            const std::int64_t i = task_.first_row + r;
            RowResult result;
            if (kTerms != Terms::exponential || task_.shift != nullptr) result = Finish(rows_[r], sink);
            const V factor = hn::Set(d, kTerms == Terms::exponential ? output_factor(rows_[r], sink) : result.factor);
            const float* from = output_ + r * value_stride_;
            const std::int64_t at = i * task_.output_stride;
            ForVectors(d, s_.value_size, [&](std::int64_t x, const auto& load, const auto& store) HWY_ATTR {
                const V scaled = hn::Mul(load(from + x), factor);
                if (task_.rounded != nullptr)
                    store(scaled, task_.rounded + at + x);
                else
                    store(scaled, task_.output + at + x);
            });
            if (task_.shift != nullptr) {
                task_.shift[i] = result.shift;
                task_.factor[i] = result.factor;
            }
        }
    }

    const PlainTask& task_;
    const Sequence& s_;
    int groups_ = 0;
    std::int64_t query_stride_ = 0, value_stride_ = 0;
    float *queries_, *output_, *value_, *scores_;
    BlockRows block_;
    OnlineRow rows_[kMaxBlockRows];
};

void Plain(const PlainTask& task) {
    switch (task.normaliser) {  // no default: a new normalizer must choose its pass, or -Wswitch fails the build
        case Normaliser::softmax:
            return PlainPass<Terms::exponential>(task).Run();
        case Normaliser::taylor:
            return PlainPass<Terms::taylor>(task).Run();
        case Normaliser::sigmoid:
            return PlainPass<Terms::sigmoid>(task).Run();
        case Normaliser::sparsemax:
        case Normaliser::taylor_diagonal:
        case Normaliser::taylor_per_order:
        case Normaliser::taylor_diagonal_per_order:
        case Normaliser::elastic:
        case Normaliser::entmax:
            break;
    }
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(Plain);

void plain_attention(const PlainTask& task) {
    if (!is_known(task.normaliser) || !traits_of(task.normaliser).one_pass()) {
        throw Error("attention in one pass", "a normalizer without row constants: softmax, taylor or sigmoid",
                    is_known(task.normaliser) ? normaliser_name(task.normaliser)
                                              : std::to_string(static_cast<int>(task.normaliser)));
    }
    HWY_DYNAMIC_DISPATCH(Plain)(task);
}

std::int64_t plain_scratch(const Sequence& s, std::int64_t rows) {
    const std::int64_t padded = (rows + kMostRows - 1) / kMostRows * kMostRows;
    const std::int64_t key_size = pad_to_line(s.key_size), value_size = pad_to_line(s.value_size);
    return padded * (key_size + value_size) + kTileKeys * value_size + kMostRows * kTileKeys;
}

}  // namespace headscope::kernels::cpu
#endif
