// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser_softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_TAYLOR_INL_H
#endif

#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/row_results.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// 1 + s + t2 in the place of e^s, with t2 = s^2 / 2 (Arora et al. 2024, arXiv 2402.18668) or of squares
/// (second_order-inl.h), over one denominator or over one for each order. Only the first of the four is never negative.
template <bool kDiagonalOrder, bool kByOrder>
struct TaylorOf {
    static constexpr Sweep kSweep = Sweep::sums;
    static constexpr bool kEntropyOnline = false, kSigned = kDiagonalOrder || kByOrder, kDiagonal = kDiagonalOrder;

    static HWY_INLINE V Weight(F32 d, V t, V, V factor) {
        if constexpr (kSigned) return t;
        const V sum = hn::MulAdd(hn::MulAdd(t, hn::Set(d, kSecond), hn::Set(d, kFirst)), t, hn::Set(d, 1.0f));
        return hn::IfThenElseZero(Allowed(d, t), hn::Mul(sum, factor));
    }

    /// No weight of a positive rule is below 1/2 over a row's sum.
    static HWY_INLINE bool MayVanish(float, float, float) { return kSigned; }

    static HWY_INLINE RowResult Finish(const OnlineRow& row, const float*) { return finish_taylor(row, kByOrder); }

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
            if constexpr (kByOrder) {
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
        if constexpr (kByOrder) sums.t = Sum(d, second);
        if constexpr (kStatistics) sums.squared_deviations = Sum(d, deviations);
        return sums;
    }

    /// Scores [begin, end) of a row of `keys` keys become weights; shift and factor are the row's constants.
    static HWY_INLINE void SetWeights(float* HWY_RESTRICT t, const float* HWY_RESTRICT u, std::int64_t begin,
                                      std::int64_t end, std::int64_t keys, float shift, float factor) {
        const F32 d;
        const V zeroth = hn::Set(d, kByOrder ? 1.0f / static_cast<float>(keys) : factor);
        const V first = hn::Set(d, kByOrder ? shift : factor), second = hn::Set(d, factor);
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
        if constexpr (kDiagonalOrder) return hn::Load(d, u + c);
        return hn::Mul(hn::Mul(x, hn::Set(d, kSecond)), x);
    }
};

using Taylor = TaylorOf<false, false>;
using TaylorDiagonal = TaylorOf<true, false>;
using TaylorPerOrder = TaylorOf<false, true>;
using TaylorDiagonalPerOrder = TaylorOf<true, true>;

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
