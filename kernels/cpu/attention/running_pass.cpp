// SPDX-License-Identifier: GPL-3.0-or-later
// Chunks of kRunningChunk tokens of one head. A chunk's own sums are kept apart from those of all earlier ones, so that
// a text of 65 536 tokens loses no more digits than one of a thousand.
#include <cmath>
#include <utility>

#include "kernels/cpu/attention/running.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/running_pass.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention/backward_pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kChunk = kRunningChunk;

HWY_INLINE float Dot(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t stride) {
    const F32 d;
    V sum = hn::Zero(d);
    for (std::int64_t c = 0; c < stride; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        sum = hn::MulAdd(hn::Load(d, a + c), hn::Load(d, b + c), sum);
    }
    return Sum(d, sum);
}

/// e^x for x <= 0, in place; -infinity gives 0, NaN stays.
HWY_INLINE void Exponentials(float* HWY_RESTRICT x) {
    const F32 d;
    const V log2e = hn::Set(d, static_cast<float>(kLog2E));
    for (std::int64_t c = 0; c < kChunk; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        hn::Store(PowerOfTwo(d, hn::Mul(hn::Load(d, x + c), log2e)), d, x + c);
    }
}

/// A chunk as float32 rows, and its scores; read by both directions.
class Chunk {
public:
    explicit Chunk(const RunningTask& task) : task_(task) {
        key_stride = pad_to_line(task.key_size);
        value_stride = pad_to_line(task.value_size);
        float* at = task.scratch;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + floats); };
        query = take(kChunk * key_stride);
        key = take(kChunk * key_stride);
        value = take(kChunk * value_stride);
        end = at;
    }

    void Read(const HeadMatrix& m, std::int64_t head, std::int64_t first, std::int64_t count, std::int64_t size,
              float* to, std::int64_t stride) const {
        CopyRows(m, head, first, count, 0, task_.real, size, to, stride);
    }
    void ReadKeys(std::int64_t first, std::int64_t count) const {
        Read(task_.key, task_.key_head, first, count, task_.key_size, key, key_stride);
        Read(task_.value, task_.key_head, first, count, task_.value_size, value, value_stride);
    }

    std::int64_t key_stride, value_stride;
    float *query, *key, *value, *end;

private:
    const RunningTask& task_;
};

class ForwardPass {
public:
    explicit ForwardPass(const RunningTask& task) : task_(task), chunk_(task), size_(chunk_.value_stride) {
        before_ = chunk_.end;
        inside_ = before_ + size_;
        output_ = inside_ + size_;
    }

    void Run() {
        SetZero(before_, size_);
        const bool goes_on = task_.state.numerator != nullptr;
        if (goes_on) {
            for (std::int64_t c = 0; c < task_.value_size; ++c) before_[c] = task_.state.numerator[c];
            denominator_ = double{*task_.state.denominator};
            maximum_ = *task_.state.maximum;
        }
        for (std::int64_t first = 0; first < task_.real; first += kChunk) {
            if (task_.cancel != nullptr && task_.cancel->load(std::memory_order_relaxed)) return;
            Tokens(first, HWY_MIN(kChunk, task_.real - first));
        }
        Padding();
        if (!goes_on) return;
        for (std::int64_t c = 0; c < task_.value_size; ++c) task_.state.numerator[c] = before_[c];
        *task_.state.denominator = static_cast<float>(denominator_);
        *task_.state.maximum = maximum_;
    }

private:
    void Tokens(std::int64_t first, std::int64_t count) {
        chunk_.Read(task_.query, task_.head, first, count, task_.key_size, chunk_.query, chunk_.key_stride);
        chunk_.ReadKeys(first, count);
        Weigh(first, count);
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        SetZero(inside_, size_);
        for (std::int64_t r = 0; r < count; ++r) {
            const V grown = hn::Set(d, weight_[r]), shrunk = hn::Set(d, step_[r]);
            const V left = hn::Set(d, since_[r]), factor = hn::Set(d, reciprocal_[r]);
            const float* v = chunk_.value + r * size_;
            float* o = output_ + r * size_;
            for (std::int64_t c = 0; c < size_; c += lanes) {
                const V own = hn::MulAdd(grown, hn::Load(d, v + c), hn::Mul(shrunk, hn::Load(d, inside_ + c)));
                hn::Store(own, d, inside_ + c);
                hn::Store(hn::Mul(factor, hn::MulAdd(left, hn::Load(d, before_ + c), own)), d, o + c);
            }
        }
        if (task_.output.data != nullptr)
            WriteRows(output_, size_, count, task_.value_size, 1.0f, task_.output, task_.head, first);
        const V left = hn::Set(d, since_[count - 1]);
        for (std::int64_t c = 0; c < size_; c += lanes) {
            hn::Store(hn::MulAdd(left, hn::Load(d, before_ + c), hn::Load(d, inside_ + c)), d, before_ + c);
        }
    }

    /// For each token: its exponential relative to the running maximum, the factor on sums when that rises, the factor
    /// on sums of earlier chunks, and one over the denominator.
    void Weigh(std::int64_t first, std::int64_t count) {
        const float start = maximum_;
        for (std::int64_t r = 0; r < kChunk; ++r) weight_[r] = step_[r] = since_[r] = 0.0f;
        for (std::int64_t r = 0; r < count; ++r) {
            const float s = task_.scale * Dot(chunk_.query + r * chunk_.key_stride, chunk_.key + r * chunk_.key_stride,
                                              chunk_.key_stride);
            const float old = maximum_;
            if (s > maximum_) maximum_ = s;
            weight_[r] = s - maximum_;
            // Equal ones may be infinite: nothing has been seen, or a score has overflowed.
            step_[r] = old == maximum_ ? 0.0f : old - maximum_;
            since_[r] = start == maximum_ ? 0.0f : start - maximum_;
            if (task_.rows.score != nullptr) {
                task_.rows.score[first + r] = s;
                task_.rows.maximum[first + r] = maximum_;
            }
        }
        Exponentials(weight_);
        Exponentials(step_);
        Exponentials(since_);
        for (std::int64_t r = 0; r < count; ++r) {
            denominator_ = denominator_ * double{step_[r]} + double{weight_[r]};
            reciprocal_[r] = static_cast<float>(1.0 / denominator_);
            if (task_.rows.score != nullptr) task_.rows.denominator[first + r] = static_cast<float>(denominator_);
        }
    }

    void Padding() {
        SetZero(output_, size_);
        for (std::int64_t i = task_.real; i < task_.length; ++i) {
            if (task_.output.data != nullptr)
                WriteRows(output_, size_, 1, task_.value_size, 1.0f, task_.output, task_.head, i);
            if (task_.rows.score == nullptr) continue;
            task_.rows.score[i] = task_.rows.maximum[i] = 0.0f;
            task_.rows.denominator[i] = 1.0f;
        }
    }

    const RunningTask& task_;
    Chunk chunk_;
    std::int64_t size_;
    float *before_, *inside_, *output_;
    double denominator_ = 0.0;
    float maximum_ = -kInfinity;
    HWY_ALIGN float weight_[kChunk], step_[kChunk], since_[kChunk], reciprocal_[kChunk];
};

class BackwardPassOfRows {
public:
    explicit BackwardPassOfRows(const RunningTask& task) : task_(task), chunk_(task) {
        key_size_ = chunk_.key_stride;
        size_ = chunk_.value_stride;
        float* at = chunk_.end;
        const auto take = [&at](std::int64_t floats) { return std::exchange(at, at + floats); };
        output_ = take(kChunk * size_);
        gradient_ = take(kChunk * size_);
        query_sums_ = take(kChunk * key_size_);
        key_sums_ = take(kChunk * key_size_);
        value_sums_ = take(kChunk * size_);
        later_ = take(task.group * size_);
        shares_ = take(pad_to_line(2 * task.group));  // of each head, a float64
    }

    void Run() {
        SetZero(later_, task_.group * size_);
        SetZero(shares_, pad_to_line(2 * task_.group));
        Padding();
        for (std::int64_t first = (task_.real - 1) / kChunk * kChunk; task_.real > 0 && first >= 0; first -= kChunk) {
            if (task_.cancel != nullptr && task_.cancel->load(std::memory_order_relaxed)) return;
            const std::int64_t count = HWY_MIN(kChunk, task_.real - first);
            chunk_.ReadKeys(first, count);
            SetZero(key_sums_, kChunk * key_size_);
            SetZero(value_sums_, kChunk * size_);
            for (std::int64_t n = 0; n < task_.group; ++n) Head(n, first, count);
            Write(key_sums_, key_size_, task_.key_size, count, task_.key_gradient, task_.key_head, first);
            Write(value_sums_, size_, task_.value_size, count, task_.value_gradient, task_.key_head, first);
        }
    }

private:
    static void Write(const float* from, std::int64_t stride, std::int64_t size, std::int64_t count,
                      const HeadTarget& target, std::int64_t head, std::int64_t first) {
        if (target.data != nullptr) WriteRows(from, stride, count, size, 1.0f, target, head, first);
    }

    void Head(std::int64_t n, std::int64_t first, std::int64_t count) {
        const std::int64_t h = task_.head + n;
        chunk_.Read(task_.query, h, first, count, task_.key_size, chunk_.query, key_size_);
        chunk_.Read(task_.forward_output, h, first, count, task_.value_size, output_, size_);
        chunk_.Read(task_.output_gradient, h, first, count, task_.value_size, gradient_, size_);
        Weigh(n, first, count);
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        float* later = later_ + n * size_;
        double share = 0.0;
        hwy::CopyBytes<8>(shares_ + 2 * n, &share);
        for (std::int64_t r = count; r-- > 0;) {
            const float* g = gradient_ + r * size_;
            share = double{Dot(g, output_ + r * size_, size_)} + double{step_[r]} * share;
            const V shrunk = hn::Set(d, step_[r]), weight = hn::Set(d, weight_[r]);
            const float* v = chunk_.value + r * size_;
            float* sums = value_sums_ + r * size_;
            V dot = hn::Zero(d);
            for (std::int64_t c = 0; c < size_; c += lanes) {
                const V all = hn::MulAdd(shrunk, hn::Load(d, later + c), hn::Load(d, g + c));
                hn::Store(all, d, later + c);
                hn::Store(hn::MulAdd(weight, all, hn::Load(d, sums + c)), d, sums + c);
                dot = hn::MulAdd(hn::Load(d, v + c), all, dot);
            }
            const double slope = double{weight_[r]} * (double{Sum(d, dot)} - share);
            const V of_score = hn::Set(d, static_cast<float>(slope * double{task_.scale}));
            for (std::int64_t c = 0; c < key_size_; c += lanes) {
                const std::int64_t at = r * key_size_ + c;
                hn::Store(hn::Mul(of_score, hn::Load(d, chunk_.key + at)), d, query_sums_ + at);
                hn::Store(hn::MulAdd(of_score, hn::Load(d, chunk_.query + at), hn::Load(d, key_sums_ + at)), d,
                          key_sums_ + at);
            }
        }
        hwy::CopyBytes<8>(&share, shares_ + 2 * n);
        Write(query_sums_, key_size_, task_.key_size, count, task_.query_gradient, h, first);
    }

    /// A_jj of each token, and by what it shrinks from one row to the next.
    void Weigh(std::int64_t n, std::int64_t first, std::int64_t count) {
        const std::int64_t at = n * task_.length + first;
        const float *score = task_.rows.score + at, *maximum = task_.rows.maximum + at;
        const float* denominator = task_.rows.denominator + at;
        for (std::int64_t r = 0; r < kChunk; ++r) weight_[r] = step_[r] = 0.0f;
        const bool last = first + count == task_.real;
        for (std::int64_t r = 0; r < count; ++r) {
            weight_[r] = score[r] - maximum[r];
            const bool none = last && r + 1 == count;
            step_[r] = none || maximum[r] == maximum[r + 1] ? 0.0f : maximum[r] - maximum[r + 1];
        }
        Exponentials(weight_);
        Exponentials(step_);
        for (std::int64_t r = 0; r < count; ++r) {
            weight_[r] /= denominator[r];
            step_[r] = last && r + 1 == count ? 0.0f : step_[r] * (denominator[r] / denominator[r + 1]);
        }
    }

    void Padding() {
        SetZero(query_sums_, key_size_);
        SetZero(value_sums_, size_);
        for (std::int64_t i = task_.real; i < task_.length; ++i) {
            for (std::int64_t n = 0; n < task_.group; ++n)
                Write(query_sums_, key_size_, task_.key_size, 1, task_.query_gradient, task_.head + n, i);
            Write(query_sums_, key_size_, task_.key_size, 1, task_.key_gradient, task_.key_head, i);
            Write(value_sums_, size_, task_.value_size, 1, task_.value_gradient, task_.key_head, i);
        }
    }

    const RunningTask& task_;
    Chunk chunk_;
    std::int64_t key_size_, size_;
    float *output_, *gradient_, *query_sums_, *key_sums_, *value_sums_, *later_, *shares_;
    HWY_ALIGN float weight_[kChunk], step_[kChunk];
};

void RunningForward(const RunningTask& task) {
    ForwardPass(task).Run();
}

void RunningBackward(const RunningTask& task) {
    BackwardPassOfRows(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(RunningForward);
HWY_EXPORT(RunningBackward);

void running_forward_task(const RunningTask& task) {
    HWY_DYNAMIC_DISPATCH(RunningForward)(task);
}

void running_backward_task(const RunningTask& task) {
    HWY_DYNAMIC_DISPATCH(RunningBackward)(task);
}

std::int64_t running_scratch(std::int64_t key_size, std::int64_t value_size, std::int64_t group) {
    const std::int64_t keys = pad_to_line(key_size), values = pad_to_line(value_size);
    return kRunningChunk * (4 * keys + 4 * values) + (group + 2) * values + pad_to_line(2 * group);
}

}  // namespace headscope::kernels::cpu
#endif
