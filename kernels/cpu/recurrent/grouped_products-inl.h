// SPDX-License-Identifier: GPL-3.0-or-later
// Included once per SIMD target. Products and triangular solves of small matrices. Left factors lie in groups of kGroup
// rows, right ones row by row with strides of an odd number of cache lines, or transposed in panels of two vectors.
#if defined(HEADSCOPE_KERNELS_CPU_GROUPED_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSCOPE_KERNELS_CPU_GROUPED_PRODUCTS_INL_H
#undef HEADSCOPE_KERNELS_CPU_GROUPED_PRODUCTS_INL_H
#else
#define HEADSCOPE_KERNELS_CPU_GROUPED_PRODUCTS_INL_H
#endif

#include <utility>

#include "kernels/cpu/attention/backward_pass-inl.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/flop_counter.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

// Rows of a register block: a divisor of a piece, sixteen accumulators with AVX-512 and eight elsewhere.
#if HWY_TARGET <= HWY_AVX3
constexpr int kGroup = 8;
#else
constexpr int kGroup = 4;
#endif
using GroupIndices = std::make_index_sequence<kGroup>;

/// Element (r, k) is at data[r / kGroup * group + k * step + r % kGroup].
struct Left {
    const float* data;
    std::int64_t group, step;
    const float* Rows(std::int64_t r) const { return data + r / kGroup * group; }
};
/// The transpose of a matrix that lies row by row.
Left Transposed(const float* data, std::int64_t stride) {
    return {data, kGroup, stride};
}

/// Steps that a group of rows sees: all, those up to its last row, or those from its first one on.
enum class Steps { all, lower, upper };
/// After its sum over steps a group may be solved for: x_r += sum of a[r][s] x_s over the rows before it or behind it.
enum class Solve { none, down, up };

/// x_r += a[r] x of row kFrom, which is finished, where it is row r's turn to wait for it.
template <int kVectors, Solve kSolve, std::size_t kFrom, std::size_t kRow>
HWY_INLINE void SolveShare(const float* HWY_RESTRICT a, V* left, V* right) {
    if constexpr (kSolve == Solve::down ? kRow > kFrom : kRow < kFrom) {
        const V x = hn::Set(F32(), a[kRow]);
        left[kRow] = hn::MulAdd(x, left[kFrom], left[kRow]);
        if constexpr (kVectors == 2) right[kRow] = hn::MulAdd(x, right[kFrom], right[kRow]);
    }
}
template <int kVectors, Solve kSolve, std::size_t kFrom, std::size_t... R>
HWY_INLINE void SolveRow(std::index_sequence<R...>, const float* HWY_RESTRICT own, std::int64_t a_step, V* left,
                         V* right) {
    const float* a = own + static_cast<std::int64_t>(kFrom) * a_step;
    (SolveShare<kVectors, kSolve, kFrom, R>(a, left, right), ...);
}

/// c (+)= a b of kGroup rows and one or two vectors of columns; `own` is `a` at the group's own first step.
template <int kVectors, Solve kSolve, std::size_t... R>
HWY_INLINE void GroupBlock(std::index_sequence<R...>, const float* HWY_RESTRICT a, std::int64_t a_step,
                           const float* HWY_RESTRICT b, std::int64_t b_step, std::int64_t steps, bool accumulate,
                           const float* HWY_RESTRICT own, float* c, std::int64_t c_stride) {
    const F32 d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    V left[kGroup], right[kGroup];
    if (accumulate) {
        ((left[R] = hn::Load(d, c + static_cast<std::int64_t>(R) * c_stride)), ...);
        if constexpr (kVectors == 2)
            ((right[R] = hn::Load(d, c + static_cast<std::int64_t>(R) * c_stride + lanes)), ...);
    } else {
        ((left[R] = hn::Zero(d), right[R] = hn::Zero(d)), ...);
    }
    for (std::int64_t k = 0; k < steps; ++k) {
        const V b_left = hn::Load(d, b);
        V x;
        if constexpr (kVectors == 2) {
            const V b_right = hn::Load(d, b + lanes);
            ((x = hn::Set(d, a[R]), left[R] = hn::MulAdd(x, b_left, left[R]),
              right[R] = hn::MulAdd(x, b_right, right[R])),
             ...);
        } else {
            ((x = hn::Set(d, a[R]), left[R] = hn::MulAdd(x, b_left, left[R])), ...);
        }
        a += a_step;
        b += b_step;
    }
    if constexpr (kSolve != Solve::none) {
        (SolveRow < kVectors, kSolve,
         kSolve == Solve::down ? R : kGroup - 1 - R > (GroupIndices(), own, a_step, left, right), ...);
    }
    ((hn::Store(left[R], d, c + static_cast<std::int64_t>(R) * c_stride)), ...);
    if constexpr (kVectors == 2) ((hn::Store(right[R], d, c + static_cast<std::int64_t>(R) * c_stride + lanes)), ...);
}

template <Solve kSolve>
HWY_INLINE void Group(bool two, const float* a, std::int64_t a_step, const float* b, std::int64_t b_step,
                      std::int64_t steps, bool accumulate, const float* own, float* c, std::int64_t c_stride) {
    if (two)
        GroupBlock<2, kSolve>(GroupIndices(), a, a_step, b, b_step, steps, accumulate, own, c, c_stride);
    else
        GroupBlock<1, kSolve>(GroupIndices(), a, a_step, b, b_step, steps, accumulate, own, c, c_stride);
}

/// c [rows, columns] (+)= a b, b row by row; rows a multiple of kGroup, columns of whole vectors.
void Product(const Left& a, const float* b, std::int64_t b_stride, std::int64_t rows, std::int64_t columns,
             std::int64_t steps, Steps seen, bool accumulate, float* c, std::int64_t c_stride) {
    const std::int64_t width = PanelWidth();
    for (std::int64_t x = 0; x < columns; x += width) {
        for (std::int64_t r = 0; r < rows; r += kGroup) {
            const std::int64_t begin = seen == Steps::upper ? r : 0;
            const std::int64_t end = seen == Steps::lower ? HWY_MIN(r + kGroup, steps) : steps;
            Group<Solve::none>(x + width <= columns, a.Rows(r) + begin * a.step, a.step, b + begin * b_stride + x,
                               b_stride, end - begin, accumulate, nullptr, c + r * c_stride + x, c_stride);
        }
    }
    executed_flops((seen == Steps::all ? 2 : 1) * rows * columns * steps);
}

/// c [rows, count] (+)= a b^T, b [count, steps] row by row; `lower`: of each group only columns up to its last row.
/// panel: room for `steps` times two vectors.
void ProductWithRows(const Left& a, const float* b, std::int64_t b_stride, std::int64_t rows, std::int64_t count,
                     std::int64_t steps, bool lower, float* panel, float* c, std::int64_t c_stride) {
    const std::int64_t width = PanelWidth();
    for (std::int64_t x = 0; x < count; x += width) {
        const bool two = x + width / 2 < count;
        PackColumns(b + x * b_stride, b_stride, HWY_MIN(width, count - x), steps, width, panel);
        for (std::int64_t r = lower ? x / kGroup * kGroup : 0; r < rows; r += kGroup) {
            Group<Solve::none>(two, a.Rows(r), a.step, panel, width, steps, false, nullptr, c + r * c_stride + x,
                               c_stride);
        }
    }
    executed_flops((lower ? 1 : 2) * rows * count * steps);
}

/// x [rows, columns] <- (I - a)^-1 x in place, a strictly lower (down) or upper (up) triangular.
template <Solve kSolve>
void SolveTriangle(const Left& a, std::int64_t rows, std::int64_t columns, float* x, std::int64_t stride) {
    const std::int64_t width = PanelWidth();
    for (std::int64_t c = 0; c < columns; c += width) {
        for (std::int64_t n = 0; n < rows; n += kGroup) {
            const std::int64_t r = kSolve == Solve::down ? n : rows - kGroup - n;
            const std::int64_t begin = kSolve == Solve::down ? 0 : r + kGroup;
            Group<kSolve>(c + width <= columns, a.Rows(r) + begin * a.step, a.step, x + begin * stride + c, stride, n,
                          true, a.Rows(r) + r * a.step, x + r * stride + c, stride);
        }
    }
    executed_flops(rows * rows * columns);
}

/// Rows [rows][stride] as a left factor.
Left PackLeft(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t steps, float* to) {
    for (std::int64_t r = 0; r < rows; r += kGroup)
        PackColumns(from + r * stride, stride, kGroup, steps, kGroup, to + r * steps);
    return {to, kGroup * steps, kGroup};
}

/// Row stride for `numbers` floats: an odd number of cache lines, so that adjacent rows share no cache set.
std::int64_t OddLines(std::int64_t numbers) {
    const std::int64_t lines = pad_to_line(numbers) / 16;
    return (lines + 1 - lines % 2) * 16;
}
}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
