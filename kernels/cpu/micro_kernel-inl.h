// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target.
#if defined(HEADSCOPE_KERNELS_CPU_MICRO_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_MICRO_KERNEL_INL_H
#undef HEADSCOPE_KERNELS_CPU_MICRO_KERNEL_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_MICRO_KERNEL_INL_H
#endif

#include <utility>

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

// Rows of a register block. With two vectors a row the accumulators fill the registers: 24 of 32 with AVX-512,
// 12 of 16 elsewhere.
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kRows = 12;
#else
inline constexpr int kRows = 6;
#endif

/// c[r][v] (+)= sum over k of a[r, k] b[k][v] for kRows rows and one or two vectors of columns. a is found at
/// a[r * kARow + k * kAStep], b's rows are b_stride apart, c's c_stride. The sum runs over k in rising order in one
/// accumulator, so a score has the same bits in whichever tile it is computed.
template <int kARow, int kAStep, std::size_t... R>
HWY_INLINE void MultiplyTwo(std::index_sequence<R...>, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            std::int64_t b_stride, std::int64_t steps, bool accumulate, float* HWY_RESTRICT c,
                            std::int64_t c_stride) {
    const F32 d;
    const std::size_t lanes = hn::Lanes(d);
    V left[sizeof...(R)], right[sizeof...(R)];
    if (accumulate) {
        ((left[R] = hn::Load(d, c + static_cast<std::int64_t>(R) * c_stride),
          right[R] = hn::Load(d, c + static_cast<std::int64_t>(R) * c_stride + lanes)),
         ...);
    } else {
        ((left[R] = hn::Zero(d), right[R] = hn::Zero(d)), ...);
    }
    for (std::int64_t k = 0; k < steps; ++k) {
        const V b_left = hn::Load(d, b), b_right = hn::Load(d, b + lanes);
        V x;
        ((x = hn::Set(d, a[static_cast<int>(R) * kARow]), left[R] = hn::MulAdd(x, b_left, left[R]),
          right[R] = hn::MulAdd(x, b_right, right[R])),
         ...);
        a += kAStep;
        b += b_stride;
    }
    ((hn::Store(left[R], d, c + static_cast<std::int64_t>(R) * c_stride),
      hn::Store(right[R], d, c + static_cast<std::int64_t>(R) * c_stride + lanes)),
     ...);
}

template <int kARow, int kAStep, std::size_t... R>
HWY_INLINE void MultiplyOne(std::index_sequence<R...>, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                            std::int64_t b_stride, std::int64_t steps, bool accumulate, float* HWY_RESTRICT c,
                            std::int64_t c_stride) {
    const F32 d;
    V sum[sizeof...(R)];
    if (accumulate)
        ((sum[R] = hn::Load(d, c + static_cast<std::int64_t>(R) * c_stride)), ...);
    else
        ((sum[R] = hn::Zero(d)), ...);
    for (std::int64_t k = 0; k < steps; ++k) {
        const V right = hn::Load(d, b);
        ((sum[R] = hn::MulAdd(hn::Set(d, a[static_cast<int>(R) * kARow]), right, sum[R])), ...);
        a += kAStep;
        b += b_stride;
    }
    ((hn::Store(sum[R], d, c + static_cast<std::int64_t>(R) * c_stride)), ...);
}

using RowIndices = std::make_index_sequence<kRows>;

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
