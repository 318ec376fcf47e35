// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. See normaliser/softmax-inl.h for what a normaliser declares.
#if defined(HEADSCOPE_KERNELS_CPU_NORMALISER_ELASTIC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_NORMALISER_ELASTIC_INL_H
#undef HEADSCOPE_KERNELS_CPU_NORMALISER_ELASTIC_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_NORMALISER_ELASTIC_INL_H
#endif

#include "kernels/cpu/attention/normaliser/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Elastic-Softmax (Lazy Attention, Eq. 5): A = max(p + offset, 0) of a softmax p. An offset above 0 is no weight of a
/// masked pair.
struct Elastic {
    static constexpr NormaliserTraits kTraits = traits_of(Normaliser::elastic);
    static constexpr bool kEntropyOnline = false;

    static HWY_INLINE V Weight(F32 d, V t, const RowVectors& row) {
        return Kept(d, t, Softmax::Weight(d, t, row), row);
    }

    static HWY_INLINE WeightAndSlope WithSlope(F32 d, V t, const RowVectors& row) {
        const V slope = Softmax::Weight(d, t, row);
        return {Kept(d, t, slope, row), slope};
    }

    static HWY_INLINE V OfConstant(F32 d, V s, V constant, V offset) {
        const V x = hn::Add(Softmax::OfConstant(d, s, constant, offset), offset);
        return hn::IfThenElse(hn::Eq(x, x), hn::Max(x, hn::Zero(d)), x);
    }

    static HWY_INLINE bool MayVanish(float, float, float) { return true; }

    /// Entropy, squares and mass are not those of the softmax.
    static HWY_INLINE RowResult Finish(const OnlineRow& row, const float* sink_logit) {
        RowResult result = finish_softmax(row, sink_logit);
        result.entropy = result.squares = result.mass = 0.0;
        return result;
    }

    template <bool kMaskedTile, bool kStatistics>
    static HWY_INLINE TileSums Add(const float* HWY_RESTRICT t, std::int64_t begin, std::int64_t end, float maximum,
                                   float mean) {
        return Softmax::Add<kMaskedTile, kStatistics, /*kEntropy=*/false>(t, begin, end, maximum, mean);
    }

private:
    static HWY_INLINE V Kept(F32 d, V t, V p, const RowVectors& row) {
        const V x = hn::Add(p, row.offset);
        // Not max(x, 0): what is no number must show.
        return hn::IfThenElseZero(hn::AndNot(hn::Lt(x, hn::Zero(d)), Allowed(d, t)), x);
    }
};

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
