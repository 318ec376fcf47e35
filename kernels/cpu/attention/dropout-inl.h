// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. kernels/summary/attention_dropout.h for a row of a tile.
#if defined(HEADSCOPE_KERNELS_CPU_DROPOUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_DROPOUT_INL_H
#undef HEADSCOPE_KERNELS_CPU_DROPOUT_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_DROPOUT_INL_H
#endif

#include "kernels/cpu/attention/sequence.h"
#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Columns [begin, end) of `row`, numbers of query i and keys key + column: 0 where the pair is dropped, else times
/// 1 / (1 - p). Nothing without dropout. A dropped NaN is 0, too.
HWY_INLINE void Drop(const Sequence& s, std::int64_t h, std::int64_t i, std::int64_t key, std::int64_t begin,
                     std::int64_t end, float* HWY_RESTRICT row) {
    if (s.dropout_threshold == 0) return;
    const F32 d;
    const hn::RebindToUnsigned<F32> du;
    const std::uint64_t own = dropout_row(s.dropout, h, i + s.query_offset);
    const auto low = hn::Set(du, static_cast<std::uint32_t>(own));
    const auto high = hn::Set(du, static_cast<std::uint32_t>(own >> 32U));
    const auto threshold = hn::Set(du, s.dropout_threshold);
    const V factor = hn::Set(d, s.dropout_factor);
    for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
        const auto number = hn::Iota(du, static_cast<std::uint32_t>(key + c));
        auto x = hn::Add(hn::Mul(number, hn::Set(du, 0x9E3779B9U)), low);
        x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x85EBCA6BU));
        x = hn::Xor(x, high);
        x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, 0xC2B2AE35U));
        x = hn::Xor(x, hn::ShiftRight<16>(x));
        const auto kept = hn::RebindMask(d, hn::Not(hn::Lt(x, threshold)));
        hn::Store(hn::IfThenElseZero(kept, hn::Mul(hn::Load(d, row + c), factor)), d, row + c);
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
