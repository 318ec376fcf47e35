// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target (see hwy/foreach_target.h), hence no ordinary include guard.
#if defined(HEADSCOPE_KERNELS_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_MATH_INL_H
#undef HEADSCOPE_KERNELS_CPU_MATH_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_MATH_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;

/// 2^u for u <= 0, relative error 1.1e-7 (under two units in the last place), exactly 1 at 0, and exactly 0 for
/// u <= -127: the exponent field is then 0, so masked pairs need no blend. NaN stays NaN. The polynomial is the
/// minimax one of degree 5 on [-1/2, 1/2] with constant term 1.
HWY_INLINE V PowerOfTwo(F32 d, V u) {
    const hn::RebindToSigned<F32> di;
    u = hn::Max(hn::Set(d, -127.0f), u);      // in this order: the second operand survives if it is NaN
    const V magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    const V shifted = hn::Add(u, magic);
    const V f = hn::Sub(u, hn::Sub(shifted, magic));
    V p = hn::MulAdd(f, hn::Set(d, 1.326472731e-03f), hn::Set(d, 9.671512991e-03f));
    p = hn::MulAdd(f, p, hn::Set(d, 5.550733581e-02f));
    p = hn::MulAdd(f, p, hn::Set(d, 2.402224243e-01f));
    p = hn::MulAdd(f, p, hn::Set(d, 6.931470037e-01f));
    p = hn::MulAdd(f, p, hn::Set(d, 1.0f));
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
    return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

/// 1 / (1 + 2^-t); exactly 0 for t <= -127.
HWY_INLINE V SigmoidOfPower(F32 d, V t) {
    const V e = PowerOfTwo(d, hn::Neg(hn::Abs(t)));
    const V one = hn::Set(d, 1.0f);
    return hn::Div(hn::IfThenElse(hn::Lt(t, hn::Zero(d)), e, one), hn::Add(one, e));
}

HWY_INLINE V Sigmoid(F32 d, V x) {
    return SigmoidOfPower(d, hn::Mul(x, hn::Set(d, static_cast<float>(kLog2E))));
}

HWY_INLINE float Sum(F32 d, V v) {
    return hn::GetLane(hn::SumOfLanes(d, v));
}

/// Row constants (RowConstants) and the elastic normalizer's offset, as vectors.
struct RowVectors {
    V shift, factor, offset;
};

/// The row at `at` of arrays of all three; `offset` is read for normalisers that have such.
template <class N>
HWY_INLINE RowVectors RowAt(F32 d, const float* shift, const float* factor, const float* offset, std::int64_t at) {
    RowVectors row{hn::Set(d, shift[at]), hn::Set(d, factor[at]), hn::Zero(d)};
    if constexpr (N::kTraits.takes_offsets()) row.offset = hn::Set(d, offset[at]);
    return row;
}

/// A weight, and the slope that RowMean (kernels/normaliser.h) speaks of.
struct WeightAndSlope {
    V weight, slope;
};

/// Lanes that are not the mark of a masked pair; NaN scores count as allowed, so that they show.
HWY_INLINE hn::Mask<F32> Allowed(F32 d, V t) {
    return hn::Not(hn::Eq(t, hn::Set(d, kMasked)));
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
