// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. A tile of scores: kRows queries of one head against up to kTileKeys keys.
#if defined(HEADSCOPE_KERNELS_CPU_SCORES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_SCORES_INL_H
#undef HEADSCOPE_KERNELS_CPU_SCORES_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_SCORES_INL_H
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/attention/visibility.h"
#include "kernels/cpu/micro_kernel-inl.h"
#include "kernels/flop_counter.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {

HWY_INLINE std::int64_t PanelWidth() {
    return static_cast<std::int64_t>(2 * hn::Lanes(F32()));
}

HWY_INLINE float LoadElement(const HeadMatrix& m, std::int64_t at) {
    if (m.type == ElementType::float32) return static_cast<const float*>(m.data)[at];
    const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(m.data)[at]} << 16;
    float value;
    hwy::CopyBytes<4>(&bits, &value);
    return value;
}

/// out[k * width + r] = factor * element k of row r, the rows starting at element `first` of the matrix.
HWY_INLINE void ScatterRows(const HeadMatrix& m, std::int64_t first, std::int64_t rows, std::int64_t size, float factor,
                            std::int64_t width, float* HWY_RESTRICT out) {
    for (std::int64_t r = 0; r < rows; ++r, ++out) {
        const std::int64_t row = first + r * m.row_stride;
        if (m.type == ElementType::float32) {
            const float* HWY_RESTRICT from = static_cast<const float*>(m.data) + row;
            for (std::int64_t k = 0; k < size; ++k) out[k * width] = factor * from[k];
        } else {
            for (std::int64_t k = 0; k < size; ++k) out[k * width] = factor * LoadElement(m, row + k);
        }
    }
}

/// Queries i .. i + rows - 1 of head h, times the scale, as [key_size][kRows]; rows that are missing are 0.
HWY_INLINE void PackQueries(const Sequence& s, std::int64_t h, std::int64_t i, int rows, float* HWY_RESTRICT out) {
    const std::int64_t first = h * s.query.head_stride + i * s.query.row_stride;
    ScatterRows(s.query, first, rows, s.key_size, s.query_factor, kRows, out);
    for (std::int64_t k = 0; k < s.key_size; ++k) {
        for (int r = rows; r < kRows; ++r) out[k * kRows + r] = 0.0f;
    }
}

/// Columns [begin, end) of the tile that starts at `key`; begin and end are multiples of the panel width.
HWY_INLINE void MultiplyKeys(const Sequence& s, std::int64_t h, const float* queries, std::int64_t key,
                             std::int64_t begin, std::int64_t end, float* HWY_RESTRICT scores, std::int64_t stride) {
    const std::int64_t width = PanelWidth();
    executed_flops(2 * kRows * (end - begin) * s.key_size);
    const float* panel =
        s.packed_keys + h / (s.heads / s.key_heads) * s.packed_head_stride + (key + begin) * s.key_size;
    for (std::int64_t c = begin; c < end; c += width, panel += width * s.key_size) {
        MultiplyTwo<1, kRows>(RowIndices(), queries, panel, width, s.key_size, false, scores + c, stride);
    }
}

/// Replaces the scores of keys beyond ScoreRule::far_distance that MultiplyKeys wrote, for queries i .. i + rows - 1.
HWY_INLINE void ReplaceFar(const Sequence& s, std::int64_t h, const float* queries, std::int64_t i, int rows,
                           std::int64_t key, std::int64_t begin, std::int64_t end, float* HWY_RESTRICT scores,
                           std::int64_t stride) {
    if (s.far_distance < 0) return;
    const std::int64_t width = PanelWidth(), first_near = i + s.query_offset - s.far_distance - key;
    const float* own = queries + (s.key_size - 1) * kRows;
    const float* panel =
        s.packed_keys + h / (s.heads / s.key_heads) * s.packed_head_stride + (key + begin) * s.key_size;
    HWY_ALIGN float far[kRows * kMostPanel];
    for (std::int64_t c = begin; c < HWY_MIN(end, first_near + rows - 1); c += width, panel += width * s.key_size) {
        executed_flops(2 * kRows * width * s.near_begin);
        MultiplyTwo<1, kRows>(RowIndices(), queries, panel, width, s.near_begin, false, far, width);
        for (int r = 0; r < rows; ++r) {
            const std::int64_t count = HWY_MIN(width, first_near + r - c);
            for (std::int64_t x = 0; x < count; ++x) scores[r * stride + c + x] = far[r * width + x] + own[r];
        }
    }
}

/// Slopes, distance bias and soft cap, in the order of ScoreRule.
HWY_INLINE void AdjustScores(const Sequence& s, std::int64_t h, std::int64_t i, int rows, std::int64_t key,
                             std::int64_t begin, std::int64_t end, float* HWY_RESTRICT scores, std::int64_t stride) {
    if (s.relative == nullptr && s.soft_cap == 0.0f) return;
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (int r = 0; r < rows; ++r) {
        float* row = scores + r * stride;
        if (s.relative != nullptr) {
            const std::int64_t zero = key - (i + r + s.query_offset) + s.relative_zero;
            const float* bias = s.relative + h * s.relative_length + zero;
            if (zero + begin < s.relative_end && zero + end > s.relative_begin) {
                for (std::int64_t c = begin; c < end; c += lanes) {
                    hn::Store(hn::Add(hn::Load(d, row + c), hn::LoadU(d, bias + c)), d, row + c);
                }
            }
        }
        if (s.soft_cap != 0.0f) {
            const V cap = hn::Set(d, s.soft_cap), inverse = hn::Set(d, 1.0f / s.soft_cap);
            for (std::int64_t c = begin; c < end; c += lanes) {
                const V x = hn::Mul(hn::Load(d, row + c), inverse);
                hn::Store(hn::Mul(cap, hn::Tanh(d, x)), d, row + c);
            }
        }
    }
}

/// The columns of a view, rounded outwards to panels.
struct Columns {
    std::int64_t begin, end;
    bool masked;  ///< some of them must be masked
};
HWY_INLINE Columns RoundToPanels(const TileView& view) {
    const std::int64_t width = PanelWidth();
    const std::int64_t begin = view.begin / width * width, end = (view.end + width - 1) / width * width;
    return {begin, end, view.partial || begin != view.begin || end != view.end};
}

/// Calls part(columns) for runs of panels, rising, that head h sees something of from rows [row, row + count) by block
/// visibility: what is hidden costs nothing. All of the view without such a rule.
template <class Part>
HWY_INLINE void ForSeenColumns(const Sequence& s, std::int64_t h, const BlockRows& rows, int row, int count,
                               std::int64_t key, const TileView& view, const Part& part) {
    if (!view.any) return;
    const Columns all = RoundToPanels(view);
    if (s.block_size == 0) return part(all);
    const std::int64_t width = PanelWidth(), end = HWY_MIN(all.end, s.keys - key);
    std::int64_t begin = all.begin;
    for (std::int64_t c = all.begin; c < end; c += width) {
        if (head_sees(s, h, rows, row, row + count, key + c, HWY_MIN(key + c + width, s.keys))) continue;
        if (c > begin) part(Columns{begin, c, true});
        begin = c + width;
    }
    if (all.end > begin) part(Columns{begin, all.end, true});
}

/// All of the above for rows [row, row + count) of a block: scores ready for the normaliser. allowed[r] is the number
/// of allowed pairs of each row in these columns.
HWY_INLINE void ScoreTile(const Sequence& s, std::int64_t h, const BlockRows& rows, int row, int count,
                          const float* queries, std::int64_t key, const Columns& columns, float* HWY_RESTRICT scores,
                          std::int64_t stride, std::int64_t* allowed) {
    MultiplyKeys(s, h, queries, key, columns.begin, columns.end, scores, stride);
    ReplaceFar(s, h, queries, rows.first + row, count, key, columns.begin, columns.end, scores, stride);
    AdjustScores(s, h, rows.first + row, count, key, columns.begin, columns.end, scores, stride);
    for (int r = 0; r < count; ++r) {
        allowed[r] = columns.masked
                         ? mask_row(s, h, rows, row + r, key, columns.begin, columns.end, scores + r * stride)
                         : columns.end - columns.begin;
    }
}

}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
