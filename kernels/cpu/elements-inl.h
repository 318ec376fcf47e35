// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Vectors of float32 from and to memory of float32 or bfloat16. bfloat16 is rounded to
// nearest, ties to even; NaN stays NaN.
#if defined(HEADSCOPE_KERNELS_CPU_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_ELEMENTS_INL_H
#undef HEADSCOPE_KERNELS_CPU_ELEMENTS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_ELEMENTS_INL_H
#endif

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

HWY_INLINE V LoadElements(F32 d, const float* from) {
    return hn::LoadU(d, from);
}
HWY_INLINE V LoadElements(F32 d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, F32> d16;
    const hn::RebindToUnsigned<F32> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, from))));
}

HWY_INLINE void StoreElements(F32 d, V x, float* to) {
    hn::StoreU(x, d, to);
}
HWY_INLINE void StoreElements(F32, V x, std::uint16_t* to) {
    const hn::Rebind<std::uint16_t, F32> d16;
    const hn::RebindToUnsigned<F32> d32;
    const auto bits = hn::BitCast(d32, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFFu))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d32, 0x40u));
    const auto is_nan = hn::RebindMask(d32, hn::IsNaN(x));
    hn::StoreU(hn::TruncateTo(d16, hn::IfThenElse(is_nan, quiet, rounded)), d16, to);
}

/// The first `count` elements, fewer than a vector; the others are 0.
template <class T>
HWY_INLINE V LoadSome(F32 d, const T* from, std::int64_t count) {
    HWY_ALIGN T buffer[hn::MaxLanes(F32())] = {};
    for (std::int64_t x = 0; x < count; ++x) buffer[x] = from[x];
    return LoadElements(d, buffer);
}
template <class T>
HWY_INLINE void StoreSome(F32 d, V x, T* to, std::int64_t count) {
    HWY_ALIGN T buffer[hn::MaxLanes(F32())];
    StoreElements(d, x, buffer);
    for (std::int64_t n = 0; n < count; ++n) to[n] = buffer[n];
}

/// Calls step(x, load, store) for whole vectors, then for what is left, where load and store know the number: for rows
/// of any length. load(T*) gives a vector, store(vector, T*) writes one.
template <class Step>
HWY_INLINE void ForVectors(F32 d, std::int64_t size, const Step& step) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t x = 0;
    for (; x + lanes <= size; x += lanes) {
        step(
            x, [d](const auto* from) HWY_ATTR { return LoadElements(d, from); },
            [d](V v, auto* to) HWY_ATTR { StoreElements(d, v, to); });
    }
    if (x < size) {
        const std::int64_t rest = size - x;
        step(
            x, [d, rest](const auto* from) HWY_ATTR { return LoadSome(d, from, rest); },
            [d, rest](V v, auto* to) HWY_ATTR { StoreSome(d, v, to, rest); });
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
