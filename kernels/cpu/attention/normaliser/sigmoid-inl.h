// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser/softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_SIGMOID_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_SIGMOID_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_SIGMOID_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_SIGMOID_INL_H
#endif

#include "kernels/cpu/attention/row_results.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// The sigmoid of each score (Ramapuram et al. 2024, arXiv 2409.04431). A row has no constants; masked pairs are far
/// enough below to be exactly 0.
struct SigmoidWeights {
    static constexpr NormaliserTraits kTraits = traits_of(Normaliser::sigmoid);
    static constexpr bool kEntropyOnline = false;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors&) { return SigmoidOfPower(d, t); }

    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V weight = Weight(d, t, row);
        return {weight, hn::NegMulAdd(weight, weight, weight)};
    }

    static HWY_INLINE V OfConstant(F32 d, V s, V, V) { return Sigmoid(d, s); }

    static HWY_INLINE bool MayVanish(float t, float, float) { return t < -90.0f; }

    static HWY_INLINE RowResult Finish(const OnlineRow& row, const float*) { return finish_sigmoid(row); }
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
