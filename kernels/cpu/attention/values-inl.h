// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. A tile's values, and O += A V.
#if defined(HEADSCOPE_KERNELS_CPU_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_VALUES_INL_H
#undef HEADSCOPE_KERNELS_CPU_VALUES_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_VALUES_INL_H
#endif

#include "hwy/cache_control.h"
#include "kernels/cpu/attention/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// Rows that are fetched ahead of the copy below: models lay heads side by side, so rows are far apart in memory and
/// the processor's own prefetching does not follow.
inline constexpr std::int64_t kAhead = 12;

HWY_INLINE void Prefetch(const HeadMatrix& m, std::int64_t at, std::int64_t size) {
    const std::int64_t bytes = m.type == ElementType::float32 ? 4 : 2;
    const char* from = static_cast<const char*>(m.data) + at * bytes;
    for (std::int64_t x = 0; x < size * bytes; x += 64) hwy::Prefetch(from + x);
}

/// Values of keys key + begin .. key + end - 1 as rows [begin, end) of float32 [kTileKeys][stride]; columns beyond the
/// value's size, keys beyond the last and keys hidden by padding are 0, so that whatever padding holds stays out of O.
HWY_INLINE void PackValues(const Sequence& s, std::int64_t head, std::int64_t key, std::int64_t width,
                           std::int64_t begin, std::int64_t end, float* HWY_RESTRICT out, std::int64_t stride) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const hn::Rebind<std::uint16_t, F32> d16;
    const hn::RebindToUnsigned<F32> d32;
    const std::int64_t whole = s.value_size / lanes * lanes;
    out += begin * stride;
    for (std::int64_t x = begin; x < end; ++x, out += stride) {
        const std::int64_t j = key + x, row = head * s.value.head_stride + j * s.value.row_stride;
        std::int64_t c = 0;
        if (x < width && j >= s.key_begin && j < s.key_end) {
            if (x + kAhead < width) Prefetch(s.value, row + kAhead * s.value.row_stride, s.value_size);
            if (s.value.type == ElementType::float32) {
                const float* from = static_cast<const float*>(s.value.data) + row;
                for (; c < whole; c += lanes) hn::Store(hn::LoadU(d, from + c), d, out + c);
            } else {
                const std::uint16_t* from = static_cast<const std::uint16_t*>(s.value.data) + row;
                for (; c < whole; c += lanes) {
                    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, from + c)));
                    hn::Store(hn::BitCast(d, bits), d, out + c);
                }
            }
            for (; c < s.value_size; ++c) out[c] = LoadElement(s.value, row + c);
        }
        for (; c < stride; ++c) out[c] = 0.0f;
    }
}

/// output [kRows][stride] += weights [kRows][kTileKeys] (columns [begin, end)) times values [kTileKeys][stride].
HWY_INLINE void MultiplyValues(const float* weights, const float* values, std::int64_t begin, std::int64_t end,
                               std::int64_t stride, float* HWY_RESTRICT output) {
    const std::int64_t width = PanelWidth(), lanes = width / 2;
    executed_flops(2 * kRows * (end - begin) * stride);
    const float* rows = values + begin * stride;
    std::int64_t c = 0;
    for (; c + width <= stride; c += width) {
        MultiplyTwo<kTileKeys, 1>(RowIndices(), weights + begin, rows + c, stride, end - begin, true, output + c,
                                  stride);
    }
    for (; c < stride; c += lanes) {
        MultiplyOne<kTileKeys, 1>(RowIndices(), weights + begin, rows + c, stride, end - begin, true, output + c,
                                  stride);
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
