// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser/softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_SPARSEMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_SPARSEMAX_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_SPARSEMAX_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_SPARSEMAX_INL_H
#endif

#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Martins and Astudillo 2016 (arXiv 1602.02068): A = max(s - tau, 0) with tau such that the row sums to 1.
struct Sparsemax {
    static constexpr NormaliserTraits kTraits = traits_of(Normaliser::sparsemax);
    static constexpr bool kEntropyOnline = false;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors& row) {
        const V excess = hn::Sub(hn::Sub(t, row.shift), row.factor);
        return hn::Mul(hn::Max(hn::Zero(d), excess), hn::Set(d, static_cast<float>(kLn2)));
    }

    /// The slope is 1 on the support.
    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V weight = Weight(d, t, row);
        return {weight, hn::IfThenElseZero(hn::Gt(weight, hn::Zero(d)), hn::Set(d, 1.0f))};
    }

    static HWY_INLINE V OfConstant(F32 d, V s, V constant, V) {
        const V x = hn::Sub(s, constant);
        return hn::IfThenElse(hn::Eq(x, x), hn::Max(x, hn::Zero(d)), x);
    }

    static HWY_INLINE bool MayVanish(float t, float shift, float threshold) {
        return (t - shift) - threshold < 2.0f * kSmallestNormal;
    }

    /// The exact threshold of a row of n scores (masked ones among them): from the lowest it can have, one below the
    /// maximum, Newton's steps; each drops scores out of the support, and none come back, so it ends.
    static HWY_INLINE RowResult Search(const float* HWY_RESTRICT t, std::int64_t n, float maximum, std::int64_t pairs,
                                       const float* sink_logit) {
        if (pairs == 0) return finish_threshold(maximum, 0.0, 0.0, 0);
        if (sink_logit != nullptr && *sink_logit > maximum) maximum = *sink_logit;
        const double sink = sink_logit != nullptr ? double{*sink_logit} - double{maximum} : 0.0;
        const double* sink_of_row = sink_logit != nullptr ? &sink : nullptr;
        double threshold = -kLog2E;
        for (;;) {
            std::int64_t count = 0;
            const double sum = SumAbove(t, n, maximum, static_cast<float>(threshold), &count);
            const double next = sparsemax_step(sum, count, threshold, sink_of_row);
            if (!(static_cast<float>(next) > static_cast<float>(threshold))) {
                const double share = sink_of_row != nullptr ? kLn2 * HWY_MAX(sink - next, 0.0) : 0.0;
                return finish_threshold(maximum, next, share, pairs);
            }
            threshold = next;
        }
    }

private:
    static HWY_INLINE double SumAbove(const float* HWY_RESTRICT t, std::int64_t n, float maximum, float threshold,
                                      std::int64_t* count) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const V shift = hn::Set(d, maximum), bound = hn::Set(d, threshold);
        double total = 0.0;
        for (std::int64_t start = 0; start < n; start += kTileKeys) {
            const std::int64_t end = HWY_MIN(start + kTileKeys, n);
            V sum = hn::Zero(d);
            for (std::int64_t c = start; c < end; c += lanes) {
                const V v = hn::Sub(hn::Load(d, t + c), shift);
                // Not "v > bound": a NaN score must end in the sum.
                const auto above = hn::Not(hn::Le(v, bound));
                *count += static_cast<std::int64_t>(hn::CountTrue(d, above));
                sum = hn::Add(sum, hn::IfThenElseZero(above, v));
            }
            total += double{Sum(d, sum)};
        }
        return total;
    }
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
