// SPDX-License-Identifier: GPL-3.0-or-later
// All of it is products of matrices: for each chunk, queries' products times the state, weights of pairs times values,
// and keys' products times values, which is added to the state. A few tokens alone walk over the state once instead.
#include "kernels/cpu/recurrent/taylor_state.h"

#include <utility>

#include "kernels/normaliser.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent/taylor_state.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/backward_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kChunk = kTaylorChunk;
constexpr int kStep = 16;                    // floats from one row of packed products to the next: whole vectors
constexpr std::int64_t kFewTokens = 3;       // up to this many are read one by one
constexpr std::int64_t kFeaturePanel = 128;  // products that are packed together

class TaylorPass {
public:
    explicit TaylorPass(const TaylorTask& task) : task_(task), features_(*task.features) {
        key_stride_ = pad_to_line(task.key_size);
        columns_ = pad_to_line(task.value_size + 1);
        count_ = static_cast<std::int64_t>(features_.list.size());
        orders_ = features_.per_order ? 3 : 1;
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + floats); };
        state_ = take((count_ + kMostRows) * columns_);
        queries_ = take(HWY_MAX(kChunk, task.group) * key_stride_);
        keys_ = take(kChunk * key_stride_);
        values_ = take(kChunk * columns_);
        groups_ = take(kChunk * key_stride_);
        panels_ = take(kChunk * key_stride_);
        transposed_ = take((task.key_size + 1) * kChunk);
        columns_of_queries_ = take(kChunk / kRows * (task.key_size + 1) * kStep);
        output_ = take(3 * kChunk * columns_);
        packed_ = take(HWY_MAX(kFeaturePanel * kStep, kMostRows * kChunk));
        weights_ = take(kMostRows * kChunk);
        second_ = take(kMostRows * kChunk);
        squares_ = take((kMostRows + kMostPanel) * key_stride_);
        sums_ = take(3 * task.group * columns_);
    }

    void Run() {
        if (task_.state != nullptr && task_.length <= kFewTokens) {
            for (std::int64_t i = 0; i < task_.length; ++i) Token(i);
            return;
        }
        const bool held = task_.state != nullptr;
        const std::int64_t width = task_.value_size + 1;
        SetZero(state_, (count_ + kMostRows) * columns_);
        for (std::int64_t p = 0; held && p < count_; ++p)
            for (std::int64_t c = 0; c < width; ++c) state_[p * columns_ + c] = task_.state[p * width + c];
        for (std::int64_t first = 0; first < task_.length; first += kChunk) {
            if (task_.cancel != nullptr && task_.cancel->load(std::memory_order_relaxed)) return;
            const std::int64_t count = HWY_MIN(kChunk, task_.length - first);
            ReadKeys(first, count);
            for (std::int64_t n = 0; n < task_.group; ++n) Head(task_.head + n, first, count, first > 0 || held);
            if (held || first + kChunk < task_.length) AddKeys(count);
        }
        for (std::int64_t p = 0; held && p < count_; ++p)
            for (std::int64_t c = 0; c < width; ++c) task_.state[p * width + c] = state_[p * columns_ + c];
    }

private:
    void ReadKeys(std::int64_t first, std::int64_t count) {
        const std::int64_t end = first + count, size = task_.key_size;
        CopyRows(task_.key, task_.key_head, first, kChunk, 0, end, size, keys_, key_stride_);
        CopyRows(task_.value, task_.key_head, first, kChunk, 0, end, task_.value_size, values_, columns_);
        for (std::int64_t r = 0; r < count; ++r) values_[r * columns_ + task_.value_size] = 1.0f;
        TransposeGroups(keys_, kChunk, key_stride_, size, PanelWidth(), 1.0f, panels_);
        for (std::int64_t r = 0; r < kChunk; ++r) transposed_[r] = 1.0f;
        TransposeGroups(keys_, kChunk, key_stride_, size, kChunk, 1.0f, transposed_ + kChunk);
    }

    void Head(std::int64_t h, std::int64_t first, std::int64_t count, bool earlier) {
        const std::int64_t size = task_.key_size, groups = (count + kRows - 1) / kRows;
        CopyRows(task_.query, h, first, kChunk, 0, first + count, size, queries_, key_stride_);
        TransposeGroups(queries_, kChunk, key_stride_, size, kRows, task_.scale, groups_);
        SetZero(output_, orders_ * kChunk * columns_);
        if (earlier) {
            for (std::int64_t g = 0; g < groups; ++g) PackQueryColumns(g);
            for (int order = 0; order < 3; ++order) MultiplyState(order, groups);
        }
        for (std::int64_t g = 0; g < groups; ++g) Pairs(g);
        Finish(h, first, count);
    }

    float* OutputOf(int order) const { return output_ + (features_.per_order ? order : 0) * kChunk * columns_; }
    float* ColumnsOf(std::int64_t g) const { return columns_of_queries_ + g * (task_.key_size + 1) * kStep; }

    /// (1, q) of a group's rows side by side, [key_size + 1][kStep].
    void PackQueryColumns(std::int64_t g) {
        float* to = ColumnsOf(g);
        for (int r = 0; r < kStep; ++r) to[r] = 1.0f;
        for (std::int64_t c = 0; c < task_.key_size; ++c) {
            float* column = to + (c + 1) * kStep;
            for (int r = 0; r < kRows; ++r) column[r] = queries_[(g * kRows + r) * key_stride_ + c];
            for (int r = kRows; r < kStep; ++r) column[r] = 0.0f;
        }
    }

    /// Adds what the state holds for the products of one order. A panel of the state is read once for all rows.
    void MultiplyState(int order, std::int64_t groups) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const std::int64_t end = features_.begin[order + 1];
        for (std::int64_t first = features_.begin[order]; first < end; first += kFeaturePanel) {
            const std::int64_t steps = HWY_MIN(kFeaturePanel, end - first);
            executed_flops(2 * kRows * groups * steps * columns_);
            for (std::int64_t g = 0; g < groups; ++g) {
                const float* columns = ColumnsOf(g);
                for (std::int64_t p = 0; p < steps; ++p) {
                    const TaylorFeature& f = features_.list[static_cast<std::size_t>(first + p)];
                    const V factor = hn::Set(d, f.factor);
                    const float *left = columns + f.a * kStep, *right = columns + f.b * kStep;
                    for (std::int64_t r = 0; r < kStep; r += lanes) {
                        const V product = hn::Mul(hn::Load(d, left + r), hn::Load(d, right + r));
                        hn::Store(hn::Mul(product, factor), d, packed_ + p * kStep + r);
                    }
                }
                AccumulateProduct<1, kStep>(packed_, state_ + first * columns_, columns_, steps,
                                            OutputOf(order) + g * kRows * columns_);
            }
        }
    }

    /// Adds the pairs within the chunk of a group's rows.
    void Pairs(std::int64_t g) {
        const std::int64_t size = task_.key_size, width = PanelWidth(), keys = (g + 1) * kRows;
        const float* queries = groups_ + g * kRows * size;
        float *q_squares = squares_, *k_squares = squares_ + kMostRows * key_stride_;
        if (features_.diagonal)
            for (std::int64_t x = 0; x < kRows * size; ++x) q_squares[x] = 0.5f * queries[x] * queries[x];
        executed_flops(2 * kRows * keys * (size * (features_.diagonal ? 2 : 1) + columns_ * orders_));
        for (std::int64_t c = 0; c < keys; c += width) {
            const float* panel = panels_ + c * size;
            MultiplyTwo<1, kRows>(RowIndices(), queries, panel, width, size, false, weights_ + c, kChunk);
            if (!features_.diagonal) continue;
            for (std::int64_t x = 0; x < width * size; ++x) k_squares[x] = panel[x] * panel[x];
            MultiplyTwo<1, kRows>(RowIndices(), q_squares, k_squares, width, size, false, second_ + c, kChunk);
        }
        for (int r = 0; r < kRows; ++r) Weigh(r, g * kRows + r + 1, keys);
        float* output = OutputOf(0) + g * kRows * columns_;
        if (!features_.per_order) {
            AccumulateProduct<static_cast<int>(kChunk), 1>(weights_, values_, columns_, keys, output);
            return;
        }
        AccumulateProduct<static_cast<int>(kChunk), 1>(weights_, values_, columns_, keys,
                                                       OutputOf(1) + g * kRows * columns_);
        AccumulateProduct<static_cast<int>(kChunk), 1>(second_, values_, columns_, keys,
                                                       OutputOf(2) + g * kRows * columns_);
        for (int r = 0; r < kRows; ++r)
            for (std::int64_t c = 0; c < keys; ++c) weights_[r * kChunk + c] = c <= g * kRows + r ? 1.0f : 0.0f;
        AccumulateProduct<static_cast<int>(kChunk), 1>(weights_, values_, columns_, keys, output);
    }

    /// Scores of a row that sees the first `seen` of `keys` keys become terms; by order, first and second ones apart.
    void Weigh(int r, std::int64_t seen, std::int64_t keys) {
        float *first = weights_ + r * kChunk, *second = second_ + r * kChunk;
        for (std::int64_t c = 0; c < seen; ++c) {
            const float s = first[c], square = features_.diagonal ? second[c] : 0.5f * s * s;
            if (features_.per_order)
                second[c] = square;
            else
                first[c] = 1.0f + s + square;
        }
        for (std::int64_t c = seen; c < keys; ++c) first[c] = second[c] = 0.0f;
    }

    void Finish(std::int64_t h, std::int64_t first, std::int64_t count) {
        for (std::int64_t r = 0; r < count; ++r) Divide(output_ + r * columns_, kChunk * columns_);
        WriteRows(output_, columns_, count, task_.value_size, 1.0f, task_.output, h, first);
    }

    /// Sums over denominators, in place; the orders' sums lie `apart`.
    void Divide(float* row, std::int64_t apart) const {
        const F32 d;
        for (int order = 0; order < orders_; ++order) {
            const float* sums = row + order * apart;
            const V factor = hn::Set(d, 1.0f / sums[task_.value_size]);
            for (std::int64_t c = 0; c < columns_; c += static_cast<std::int64_t>(hn::Lanes(d))) {
                const V quotient = hn::Mul(hn::Load(d, sums + c), factor);
                hn::Store(order == 0 ? quotient : hn::Add(hn::Load(d, row + c), quotient), d, row + c);
            }
        }
    }

    /// The chunk's products of keys, times its values, join the state.
    void AddKeys(std::int64_t count) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        for (std::int64_t first = 0; first < count_; first += kRows) {
            for (int r = 0; r < kRows; ++r) {
                float* to = packed_ + r * kChunk;
                if (first + r >= count_) {
                    SetZero(to, kChunk);
                    continue;
                }
                const TaylorFeature& f = features_.list[static_cast<std::size_t>(first + r)];
                const float *left = transposed_ + f.a * kChunk, *right = transposed_ + f.b * kChunk;
                for (std::int64_t c = 0; c < kChunk; c += lanes)
                    hn::Store(hn::Mul(hn::Load(d, left + c), hn::Load(d, right + c)), d, to + c);
            }
            executed_flops(2 * kRows * count * columns_);
            AccumulateProduct<static_cast<int>(kChunk), 1>(packed_, values_, columns_, count,
                                                           state_ + first * columns_);
        }
    }

    /// One token: its products join each row of the state, which then counts for its queries.
    void Token(std::int64_t i) {
        const F32 d;
        const std::int64_t width = task_.value_size + 1, size = task_.key_size;
        CopyRows(task_.key, task_.key_head, i, 1, 0, i + 1, size, keys_, key_stride_);
        CopyRows(task_.value, task_.key_head, i, 1, 0, i + 1, task_.value_size, values_, columns_);
        values_[task_.value_size] = 1.0f;
        for (std::int64_t n = 0; n < task_.group; ++n)
            CopyRows(task_.query, task_.head + n, i, 1, 0, i + 1, size, queries_ + n * key_stride_, key_stride_);
        const auto number = [](const float* row, std::int32_t x) { return x == 0 ? 1.0f : row[x - 1]; };
        SetZero(sums_, 3 * task_.group * columns_);
        executed_flops(2 * count_ * width * (1 + task_.group));
        for (int order = 0; order < 3; ++order) {
            float* sums = sums_ + (features_.per_order ? order : 0) * task_.group * columns_;
            for (std::int64_t p = features_.begin[order]; p < features_.begin[order + 1]; ++p) {
                const TaylorFeature& f = features_.list[static_cast<std::size_t>(p)];
                float* state = task_.state + p * width;
                const V own = hn::Set(d, number(keys_, f.a) * number(keys_, f.b));
                ForVectors(d, width, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                    const V sum = hn::MulAdd(own, load(values_ + c), load(state + c));
                    store(sum, state + c);
                    for (std::int64_t n = 0; n < task_.group; ++n) {
                        const float* q = queries_ + n * key_stride_;
                        const V factor = hn::Set(d, f.factor * (number(q, f.a) * number(q, f.b)));
                        float* to = sums + n * columns_ + c;
                        hn::Store(hn::MulAdd(factor, sum, hn::Load(d, to)), d, to);
                    }
                });
            }
        }
        for (std::int64_t n = 0; n < task_.group; ++n) {
            float* row = sums_ + n * columns_;
            Divide(row, task_.group * columns_);
            WriteRows(row, columns_, 1, task_.value_size, 1.0f, task_.output, task_.head + n, i);
        }
    }

    const TaylorTask& task_;
    const TaylorFeatures& features_;
    std::int64_t key_stride_ = 0, columns_ = 0, count_ = 0;
    int orders_ = 1;
    float *state_, *queries_, *keys_, *values_, *groups_, *panels_, *transposed_, *columns_of_queries_, *output_;
    float *packed_, *weights_, *second_, *squares_, *sums_;
};

void TaylorForward(const TaylorTask& task) {
    TaylorPass(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(TaylorForward);

void taylor_forward_task(const TaylorTask& task) {
    HWY_DYNAMIC_DISPATCH(TaylorForward)(task);
}

TaylorFeatures features_of(Normaliser normaliser, std::int64_t key_size, double scale) {
    TaylorFeatures features;
    features.diagonal = traits_of(normaliser).diagonal;
    features.per_order = traits_of(normaliser).per_order;
    const auto add = [&](std::int64_t a, std::int64_t b, double factor) {
        features.list.push_back(
            {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), static_cast<float>(factor)});
    };
    add(0, 0, 1.0);
    features.begin[1] = 1;
    for (std::int64_t a = 1; a <= key_size; ++a) add(0, a, scale);
    features.begin[2] = 1 + key_size;
    const double square = scale * scale;
    for (std::int64_t a = 1; a <= key_size; ++a) {
        add(a, a, 0.5 * square);
        for (std::int64_t b = a + 1; b <= key_size && !features.diagonal; ++b) add(a, b, square);
    }
    features.begin[3] = static_cast<std::int64_t>(features.list.size());
    return features;
}

std::int64_t taylor_scratch(const TaylorFeatures& features, std::int64_t key_size, std::int64_t value_size,
                            std::int64_t group) {
    const std::int64_t keys = pad_to_line(key_size), columns = pad_to_line(value_size + 1);
    const auto count = static_cast<std::int64_t>(features.list.size());
    const std::int64_t query_rows = kTaylorChunk > group ? kTaylorChunk : group;
    return (count + kMostRows) * columns + (query_rows + 3 * kTaylorChunk) * keys + 4 * kTaylorChunk * columns +
           (key_size + 1) * kTaylorChunk + kTaylorChunk / 6 * (key_size + 1) * 16 + 128 * 16 +
           3 * kMostRows * kTaylorChunk + (kMostRows + kMostPanel) * keys + 3 * group * columns;
}

}  // namespace headscope::kernels::cpu
#endif
