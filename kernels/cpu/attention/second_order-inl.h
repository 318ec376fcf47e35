// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Scores of element-wise squares, for normalisers whose second order is not a function
// of the score: u_ij = (scale^2 / 2) sum over c of (q_ic k_jc)^2.
#if defined(HEADSCOPE_KERNELS_CPU_SECOND_ORDER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_SECOND_ORDER_INL_H
#undef HEADSCOPE_KERNELS_CPU_SECOND_ORDER_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_SECOND_ORDER_INL_H
#endif

#include "kernels/cpu/attention/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

/// out [kRows][kTileKeys], columns [begin, end) of the tile that starts at `key`. `queries` are PackQueries's, which
/// hold scale * log2(e). scratch: second_order_scratch() floats less the tile that `out` takes of them.
HWY_INLINE void ScoreSquares(const Sequence& s, std::int64_t h, const float* HWY_RESTRICT queries, std::int64_t key,
                             const Columns& columns, float* HWY_RESTRICT scratch, float* HWY_RESTRICT out) {
    const std::int64_t width = PanelWidth(), size = s.key_size;
    float* squares = scratch;
    float* panel = scratch + kMostRows * pad_to_line(size);
    const float factor = static_cast<float>(0.5 * kLn2 * kLn2);
    for (std::int64_t x = 0; x < kRows * size; ++x) squares[x] = factor * queries[x] * queries[x];
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const float* keys =
        s.packed_keys + h / (s.heads / s.key_heads) * s.packed_head_stride + (key + columns.begin) * size;
    executed_flops(2 * kRows * (columns.end - columns.begin) * size);
    for (std::int64_t c = columns.begin; c < columns.end; c += width, keys += width * size) {
        for (std::int64_t x = 0; x < width * size; x += lanes) {
            const V k = hn::Load(d, keys + x);
            hn::Store(hn::Mul(k, k), d, panel + x);
        }
        MultiplyTwo<1, kRows>(RowIndices(), squares, panel, width, size, false, out + c, kTileKeys);
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
