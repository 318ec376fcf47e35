// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser/softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#endif

#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// 1 + s + t2 instead of e^s, with t2 = s^2 / 2 (Arora et al. 2024, arXiv 2402.18668) or of squares
/// (second_order-inl.h), over one denominator or over one for each order. Only the first of the four is never negative.
template <Normaliser kNormaliser>
struct TaylorOf {
    static constexpr NormaliserTraits kTraits = traits_of(kNormaliser);
    static constexpr bool kEntropyOnline = false;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors& row) {
        if constexpr (kTraits.is_signed()) return t;
        const V sum = hn::MulAdd(hn::MulAdd(t, hn::Set(d, kSecond), hn::Set(d, kFirst)), t, hn::Set(d, 1.0f));
        return hn::IfThenElseZero(Allowed(d, t), hn::Mul(sum, row.factor));
    }

    /// The derivative of 1 + s + s^2 / 2, over the denominator.
    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V slope = hn::MulAdd(t, hn::Set(d, kFirst), hn::Set(d, 1.0f));
        return {Weight(d, t, row), hn::IfThenElseZero(Allowed(d, t), hn::Mul(slope, row.factor))};
    }

    /// A = zeroth + first s + second t2 of a score in base e.
    static HWY_INLINE V OfConstants(F32, V s, V second_order, V zeroth, V first, V second) {
        return hn::MulAdd(second_order, second, hn::MulAdd(s, first, zeroth));
    }

    /// No weight of a positive rule is below 1/2 over a row's sum.
    static HWY_INLINE bool MayVanish(float, float, float) { return kTraits.is_signed(); }

    static HWY_INLINE RowResult Finish(const OnlineRow& row, const float*) {
        return finish_taylor(row, kTraits.per_order);
    }

    /// z: the sum of the terms, t: none; by order, z: the sum of s, t: that of t2. `u`: t2, if it has scores of its
    /// own.
    template <bool kStatistics>
    static HWY_INLINE TileSums Add(const float* HWY_RESTRICT t, const float* HWY_RESTRICT u, std::int64_t begin,
                                   std::int64_t end, float mean) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        V first = hn::Zero(d), second = hn::Zero(d), deviations = hn::Zero(d);
        for (std::int64_t c = begin; c < end; c += lanes) {
            const V x = hn::Load(d, t + c);
            const auto allowed = Allowed(d, x);
            const V s = hn::Mul(x, hn::Set(d, kFirst));
            const V t2 = SecondOrder(d, x, u, c);
            if constexpr (kTraits.per_order) {
                first = hn::Add(first, hn::IfThenElseZero(allowed, s));
                second = hn::Add(second, hn::IfThenElseZero(allowed, t2));
            } else {
                first = hn::Add(first, hn::IfThenElseZero(allowed, hn::Add(hn::Set(d, 1.0f), hn::Add(s, t2))));
            }
            if constexpr (kStatistics) {
                const V w = hn::IfThenElseZero(allowed, hn::Sub(x, hn::Set(d, mean)));
                deviations = hn::MulAdd(w, w, deviations);
            }
        }
        TileSums sums;
        sums.z = Sum(d, first);
        if constexpr (kTraits.per_order) sums.t = Sum(d, second);
        if constexpr (kStatistics) sums.squared_deviations = Sum(d, deviations);
        return sums;
    }

    /// Scores [begin, end) of a row of `keys` keys become weights; shift and factor are the row's constants.
    static HWY_INLINE void SetWeights(float* HWY_RESTRICT t, const float* HWY_RESTRICT u, std::int64_t begin,
                                      std::int64_t end, std::int64_t keys, float shift, float factor) {
        const F32 d;
        const V zeroth = hn::Set(d, kTraits.per_order ? 1.0f / static_cast<float>(keys) : factor);
        const V first = hn::Set(d, kTraits.per_order ? shift : factor), second = hn::Set(d, factor);
        for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            const V x = hn::Load(d, t + c);
            const V s = hn::Mul(x, hn::Set(d, kFirst));
            const V weight = hn::MulAdd(SecondOrder(d, x, u, c), second, hn::MulAdd(s, first, zeroth));
            hn::Store(hn::IfThenElseZero(Allowed(d, x), weight), d, t + c);
        }
    }

private:
    // Scores come in base 2: s = ln 2 * t.
    static constexpr float kFirst = static_cast<float>(kLn2), kSecond = static_cast<float>(0.5 * kLn2 * kLn2);

    static HWY_INLINE V SecondOrder(F32 d, V x, const float* HWY_RESTRICT u, std::int64_t c) {
        if constexpr (kTraits.diagonal) return hn::Load(d, u + c);
        return hn::Mul(hn::Mul(x, hn::Set(d, kSecond)), x);
    }
};

using Taylor = TaylorOf<Normaliser::taylor>;
using TaylorDiagonal = TaylorOf<Normaliser::taylor_diagonal>;
using TaylorPerOrder = TaylorOf<Normaliser::taylor_per_order>;
using TaylorDiagonalPerOrder = TaylorOf<Normaliser::taylor_diagonal_per_order>;

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
