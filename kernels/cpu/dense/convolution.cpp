// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cpu/dense/convolution.h"

#include "kernels/cpu/attention/sequence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/convolution.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

template <class T>
class Convolution {
public:
    explicit Convolution(const ConvolutionTask& task)
        : t_(task), w_(*task.work), taps_(task.work->taps), all_(task.work->channels) {}

    void Forward() {
        const F32 d;
        for (std::int64_t t = t_.first; t < t_.last; ++t) {
            Look(t);
            T* to = static_cast<T*>(t_.y) + Row(t);
            ForVectors(d, t_.channels, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                const V s = Sum(c, load);
                store(w_.plain ? s : hn::Mul(s, Sigmoid(d, s)), to + c);
            });
        }
    }

    void Backward() {
        const F32 d;
        const std::int64_t end = HWY_MIN(t_.last + taps_ - 1, w_.length);
        for (std::int64_t j = 0; t_.sums != nullptr && j <= taps_; ++j) {
            for (std::int64_t c = 0; c < t_.channels; ++c) SumsOf(j)[c] = 0.0f;
        }
        for (std::int64_t t = t_.first; t < end; ++t) {
            Look(t);
            Slopes(t, t < t_.last && t_.sums != nullptr);
        }
        if (t_.dx == nullptr) return;
        for (std::int64_t t = t_.first; t < t_.last; ++t) {
            T* to = static_cast<T*>(t_.dx) + Row(t);
            ForVectors(d, t_.channels, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
                V sum = hn::Zero(d);
                for (std::int64_t j = taps_ - 1; j >= 0 && t + taps_ - 1 - j < end; --j) {
                    const float* slope = SlopeOf(t + taps_ - 1 - j);
                    sum = hn::MulAdd(load(WeightOf(j) + c), load(slope + c), sum);
                }
                store(sum, to + c);
            });
        }
    }

private:
    /// Offset of token t in y, dy and dx.
    std::int64_t Row(std::int64_t t) const { return (t_.sequence * w_.length + t) * all_ + t_.first_channel; }
    const float* WeightOf(std::int64_t j) const { return t_.weight + j * all_ + t_.first_channel; }
    float* SumsOf(std::int64_t j) const { return t_.sums + j * all_ + t_.first_channel; }
    float* SlopeOf(std::int64_t t) const { return t_.scratch + (t - t_.first) * kConvolutionChannels; }

    /// Finds the rows that token t's taps meet; those before the text are null.
    void Look(std::int64_t t) {
        for (std::int64_t j = 0; j < taps_; ++j) {
            const std::int64_t at = t - taps_ + 1 + j;
            rows_[j] = nullptr;
            if (at >= 0)
                rows_[j] = static_cast<const T*>(w_.x) + (t_.sequence * w_.length + at) * w_.row_stride;
            else if (w_.before != nullptr)
                rows_[j] = static_cast<const T*>(w_.before) + ((t_.sequence + 1) * (taps_ - 1) + at) * all_;
            if (rows_[j] != nullptr) rows_[j] += t_.first_channel;
        }
    }

    template <class Load>
    HWY_INLINE V Sum(std::int64_t c, const Load& load) const {
        V sum = load(t_.bias + t_.first_channel + c);
        for (std::int64_t j = 0; j < taps_; ++j) {
            if (rows_[j] != nullptr) sum = hn::MulAdd(load(WeightOf(j) + c), load(rows_[j] + c), sum);
        }
        return sum;
    }

    /// d loss / d s of token t, and what it adds to the sums.
    void Slopes(std::int64_t t, bool counts) {
        const F32 d;
        const T* from = static_cast<const T*>(t_.dy) + Row(t);
        float* to = SlopeOf(t);
        ForVectors(d, t_.channels, [&](std::int64_t c, const auto& load, const auto& store) HWY_ATTR {
            V slope = load(from + c);
            if (!w_.plain) {
                // silu' = sigmoid (1 + s (1 - sigmoid))
                const V s = Sum(c, load), sigmoid = Sigmoid(d, s), one = hn::Set(d, 1.0f);
                slope = hn::Mul(slope, hn::Mul(sigmoid, hn::MulAdd(s, hn::Sub(one, sigmoid), one)));
            }
            store(slope, to + c);
            if (!counts) return;
            for (std::int64_t j = 0; j < taps_; ++j) {
                float* sums = SumsOf(j) + c;
                if (rows_[j] != nullptr) store(hn::MulAdd(slope, load(rows_[j] + c), load(sums)), sums);
            }
            float* sums = SumsOf(taps_) + c;
            store(hn::Add(slope, load(sums)), sums);
        });
    }

    const ConvolutionTask& t_;
    const ShortConvolution& w_;
    std::int64_t taps_, all_;
    const T* rows_[kMostTaps];
};

void ConvolutionBlock(const ConvolutionTask& task) {
    if (task.work->type == ElementType::float32)
        Convolution<float>(task).Forward();
    else
        Convolution<std::uint16_t>(task).Forward();
}

void ConvolutionBackwardBlock(const ConvolutionTask& task) {
    if (task.work->type == ElementType::float32)
        Convolution<float>(task).Backward();
    else
        Convolution<std::uint16_t>(task).Backward();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(ConvolutionBlock);
HWY_EXPORT(ConvolutionBackwardBlock);

void convolution_block(const ConvolutionTask& task) {
    HWY_DYNAMIC_DISPATCH(ConvolutionBlock)(task);
}

void convolution_backward_block(const ConvolutionTask& task) {
    HWY_DYNAMIC_DISPATCH(ConvolutionBackwardBlock)(task);
}

std::int64_t convolution_scratch() {
    return (kConvolutionTokens + kMostTaps) * kConvolutionChannels;
}

}  // namespace headscope::kernels::cpu
#endif
