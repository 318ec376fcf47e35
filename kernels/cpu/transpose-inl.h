// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Rows of a matrix side by side, as register blocks read them.
#if defined(HEADSCOPE_KERNELS_CPU_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_TRANSPOSE_INL_H
#undef HEADSCOPE_KERNELS_CPU_TRANSPOSE_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_TRANSPOSE_INL_H
#endif

#include "kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// out[k * width + r] = rows[r * stride + k] for r < count and k < steps, and 0 for count <= r < width. Four by four,
/// with vectors of four.
HWY_INLINE void PackColumns(const float* HWY_RESTRICT rows, std::int64_t stride, std::int64_t count, std::int64_t steps,
                            std::int64_t width, float* HWY_RESTRICT out) {
    std::int64_t r = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::FixedTag<float, 4> d;
    const hn::FixedTag<double, 2> pairs;
    const auto low = [&](auto a, auto b) HWY_ATTR {
        return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
    };
    const auto high = [&](auto a, auto b) HWY_ATTR {
        return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
    };
    for (; r + 4 <= count; r += 4) {
        const float *r0 = rows + r * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
        float* to = out + r;
        std::int64_t k = 0;
        for (; k + 4 <= steps; k += 4, to += 4 * width) {
            const auto a = hn::LoadU(d, r0 + k), b = hn::LoadU(d, r1 + k), c = hn::LoadU(d, r2 + k);
            const auto e = hn::LoadU(d, r3 + k);
            const auto ab = hn::InterleaveLower(d, a, b), ce = hn::InterleaveLower(d, c, e);
            const auto ab_high = hn::InterleaveUpper(d, a, b), ce_high = hn::InterleaveUpper(d, c, e);
            hn::StoreU(low(ab, ce), d, to);
            hn::StoreU(high(ab, ce), d, to + width);
            hn::StoreU(low(ab_high, ce_high), d, to + 2 * width);
            hn::StoreU(high(ab_high, ce_high), d, to + 3 * width);
        }
        for (; k < steps; ++k, to += width) {
            to[0] = r0[k];
            to[1] = r1[k];
            to[2] = r2[k];
            to[3] = r3[k];
        }
    }
#endif
    for (; r < width; ++r) {
        for (std::int64_t k = 0; k < steps; ++k) out[k * width + r] = r < count ? rows[r * stride + k] : 0.0f;
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
