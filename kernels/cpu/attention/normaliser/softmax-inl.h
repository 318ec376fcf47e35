// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target.
//
// The interface of a normalizer's class; its row of kernels/normaliser.h is kTraits. Scores are in base 2:
// t = s / ln 2.
//   Add, Finish        sums of a tile, and a row's constants from them (Sweep::online and sums)
//   Search             a row's constants from all its scores (Sweep::panel)
//   Weight(d, t, row)  the weight of a score from what the row has
//   WithSlope          for the backward pass: the same, and what RowMean says of its slope
//   OfConstant(d, s, c, offset) the weight from a score in base e and Statistics::row_constant (maps); Taylor weights
//                      have their own, from three constants
//   MayVanish          a cheap test: false if the weight of that score is certainly above 2^-126
//   kEntropyOnline     the first pass gives entropy, squares and mass; otherwise the second takes them from the weights
//   SetWeights         signed ones: the second pass writes weights over its tiles of scores before it calls Weight,
//                      which then returns what it is given
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_SOFTMAX_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_SOFTMAX_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_SOFTMAX_INL_H
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

struct Softmax {
    static constexpr NormaliserTraits kTraits = traits_of(Normaliser::softmax);
    static constexpr bool kEntropyOnline = true;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors& row) {
        return hn::Mul(PowerOfTwo(d, hn::Sub(t, row.shift)), row.factor);
    }

    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V weight = Weight(d, t, row);
        return {weight, weight};
    }

    /// No weight exceeds 1: what rounding adds is cut off. A score that is no number stays none, though neither
    /// minimum nor exponential would keep it.
    static HWY_INLINE V OfConstant(F32 d, V s, V constant, V) {
        const V x = hn::Sub(s, constant);
        return hn::IfThenElse(hn::Eq(x, x), hn::Exp(d, hn::Min(x, hn::Zero(d))), x);
    }

    /// A factor is one over a row's sum, so it is above 2^-36 for any row that fits into memory.
    static HWY_INLINE bool MayVanish(float t, float shift, float) { return t - shift < -90.0f; }

    static HWY_INLINE RowResult Finish(const OnlineRow& row, const float* sink_logit) {
        return finish_softmax(row, sink_logit);
    }

    /// Adds the scores [begin, end) of a row whose maximum so far is `maximum`: with u = t - maximum the sums
    /// Z = sum 2^u and, with kEntropy, T = sum u 2^u and F = sum 4^u; and the squared deviations of t from `mean`.
    template <bool kMaskedTile, bool kStatistics, bool kEntropy = kStatistics>
    static HWY_INLINE TileSums Add(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, float maximum,
                                   float mean) {
        const F32 d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        const V shift = hn::Set(d, maximum), center = hn::Set(d, mean);
        V z[2] = {hn::Zero(d), hn::Zero(d)}, ut[2] = {hn::Zero(d), hn::Zero(d)};
        V f[2] = {hn::Zero(d), hn::Zero(d)}, m2[2] = {hn::Zero(d), hn::Zero(d)};
        const auto step = [&](std::int64_t c, int set) HWY_ATTR {
            const V x = hn::Load(d, t + c);
            const V u = hn::Max(hn::Set(d, -127.0f), hn::Sub(x, shift));
            const V p = PowerOfTwo(d, u);
            z[set] = hn::Add(z[set], p);
            if constexpr (kEntropy) {
                ut[set] = hn::MulAdd(u, p, ut[set]);
                f[set] = hn::MulAdd(p, p, f[set]);
            }
            if constexpr (kStatistics) {
                V w = hn::Sub(x, center);
                if constexpr (kMaskedTile) w = hn::IfThenElseZero(Allowed(d, x), w);
                m2[set] = hn::MulAdd(w, w, m2[set]);
            }
        };
        for (std::int64_t c = begin; c < end; c += 2 * lanes) {
            step(c, 0);
            step(c + lanes, 1);
        }
        TileSums sums;
        sums.z = Sum(d, hn::Add(z[0], z[1]));
        if constexpr (kEntropy) {
            sums.t = Sum(d, hn::Add(ut[0], ut[1]));
            sums.f = Sum(d, hn::Add(f[0], f[1]));
        }
        if constexpr (kStatistics) {
            sums.squared_deviations = Sum(d, hn::Add(m2[0], m2[1]));
        }
        return sums;
    }
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
