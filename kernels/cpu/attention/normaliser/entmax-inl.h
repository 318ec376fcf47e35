// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser/softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_ENTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_ENTMAX_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_ENTMAX_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_ENTMAX_INL_H
#endif

#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Peters, Niculae and Martins 2019 (arXiv 1905.05702), alpha = 1.5: A = max((s - c) / 2, 0)^2 with c such that the row
/// sums to 1.
struct Entmax {
    static constexpr NormaliserTraits kTraits = traits_of(Normaliser::entmax);
    static constexpr bool kEntropyOnline = false;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors& row) { return WithSlope(d, t, row).weight; }

    /// The slope is the root of the weight.
    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V excess = hn::Sub(hn::Sub(t, row.shift), row.factor);
        const V root = hn::Mul(hn::Max(hn::Zero(d), excess), hn::Set(d, static_cast<float>(0.5 * kLn2)));
        return {hn::Mul(root, root), root};
    }

    static HWY_INLINE V OfConstant(F32 d, V s, V constant, V) {
        const V x = hn::Sub(s, constant);
        const V root = hn::Mul(hn::Set(d, 0.5f), hn::IfThenElse(hn::Eq(x, x), hn::Max(x, hn::Zero(d)), x));
        return hn::Mul(root, root);
    }

    /// The square of 2^-63 is the smallest normal number; the excess is in base 2.
    static HWY_INLINE bool MayVanish(float t, float shift, float threshold) {
        return (t - shift) - threshold < 0x1p-60f;
    }

    /// The exact threshold of a row of n scores (masked ones among them): from the lowest it can have, where the
    /// maximum alone weighs 1, it rises and drops scores, none of which come back, until those that are left keep above
    /// theirs.
    static HWY_INLINE RowResult Search(const float* HWY_RESTRICT t, std::int64_t n, float maximum, std::int64_t pairs,
                                       const float* sink_logit) {
        if (pairs == 0) return finish_threshold(maximum, 0.0, 0.0, 0);
        if (sink_logit != nullptr && *sink_logit > maximum) maximum = *sink_logit;
        const double sink = sink_logit != nullptr ? double{*sink_logit} - double{maximum} : -double{kInfinity};
        float threshold = static_cast<float>(-2.0 * kLog2E);
        for (bool last = false;;) {
            const EntmaxStep step = entmax_step(SumAbove(t, n, maximum, threshold), sink - double{threshold});
            const double next = double{threshold} + step.rise;
            // The last step from afar is exact but for rounding, which one more from there takes out.
            if (last || !(static_cast<float>(next) > threshold)) {
                const double root = 0.5 * kLn2 * HWY_MAX(sink - next, 0.0);
                return finish_threshold(maximum, next, root * root, pairs);
            }
            last = step.last;
            threshold = static_cast<float>(next);
        }
    }

private:
    static HWY_INLINE EntmaxSums SumAbove(const float* HWY_RESTRICT t, std::int64_t n, float maximum, float threshold) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const V shift = hn::Set(d, maximum), bound = hn::Set(d, threshold), far = hn::Set(d, kInfinity);
        V least = far;
        EntmaxSums sums;
        for (std::int64_t start = 0; start < n; start += kTileKeys) {
            const std::int64_t end = HWY_MIN(start + kTileKeys, n);
            V sum = hn::Zero(d), squares = hn::Zero(d);
            for (std::int64_t c = start; c < end; c += lanes) {
                const V v = hn::Sub(hn::Sub(hn::Load(d, t + c), shift), bound);
                // Not "v > 0": a NaN score must end in the sum.
                const auto above = hn::Not(hn::Le(v, hn::Zero(d)));
                const V kept = hn::IfThenElseZero(above, v);
                sums.count += static_cast<std::int64_t>(hn::CountTrue(d, above));
                sum = hn::Add(sum, kept);
                squares = hn::MulAdd(kept, kept, squares);
                least = hn::Min(least, hn::IfThenElse(above, v, far));
            }
            sums.sum += double{Sum(d, sum)};
            sums.squares += double{Sum(d, squares)};
        }
        sums.least = hn::GetLane(hn::MinOfLanes(d, least));
        return sums;
    }
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
