// SPDX-License-Identifier: GPL-3.0-or-later
// Both factors are packed as the register block reads them (Goto and van de Geijn, ACM TOMS 34(3), 2008): a panel of
// the right factor stays in the first-level cache while row groups of the left one, from the second level, pass by.
#include "kernels/cpu/dense/gemm.h"

#include <utility>

#include "kernels/cpu/attention/sequence.h"
#include "kernels/flop_counter.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dense/gemm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/micro_kernel-inl.h"
#include "kernels/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE std::int64_t Panel() {
    return static_cast<std::int64_t>(2 * hn::Lanes(F32()));
}

void PackRight(const PackRightTask& task) {
    const F32 d;
    const MatrixView& right = task.right;
    const std::int64_t width = Panel(), lanes = width / 2, steps = right.rows;
    if (right.column_stride != 1) {
        for (std::int64_t p = task.panel_begin; p < task.panel_end; ++p) {
            const float* from = right.data + p * width * right.column_stride + task.step_begin;
            PackColumns(from, right.column_stride, HWY_MIN(width, right.columns - p * width),
                        task.step_end - task.step_begin, width, task.packed + (p * steps + task.step_begin) * width);
        }
        return;
    }
    for (std::int64_t k = task.step_begin; k < task.step_end; ++k) {
        for (std::int64_t p = task.panel_begin; p < task.panel_end; ++p) {
            const float* from = right.data + k * right.row_stride + p * width;
            float* out = task.packed + (p * steps + k) * width;
            const std::int64_t count = HWY_MIN(width, right.columns - p * width);
            if (count == width) {
                hn::Store(hn::LoadU(d, from), d, out);
                hn::Store(hn::LoadU(d, from + lanes), d, out + lanes);
            } else {
                for (std::int64_t c = 0; c < width; ++c) out[c] = c < count ? from[c] : 0.0f;
            }
        }
    }
}

/// kRows numbers that lie together.
HWY_INLINE void CopyGroup(const float* HWY_RESTRICT from, float* HWY_RESTRICT to) {
    int r = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::FixedTag<float, 4> d;
    for (; r + 4 <= kRows; r += 4) hn::StoreU(hn::LoadU(d, from + r), d, to + r);
#endif
    for (; r < kRows; ++r) to[r] = from[r];
}

/// c [kRows][two vectors] = start + sum over k of a[k][r] b[k]; `start` null: 0. Strides 0 repeat a row.
template <std::size_t... R>
HWY_INLINE void RegisterBlock(std::index_sequence<R...>, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                              std::int64_t steps, const float* start, std::int64_t start_stride, float* c,
                              std::int64_t c_stride) {
    const F32 d;
    const std::size_t lanes = hn::Lanes(d);
    V left[sizeof...(R)], right[sizeof...(R)];
    if (start != nullptr) {
        ((left[R] = hn::LoadU(d, start + static_cast<std::int64_t>(R) * start_stride),
          right[R] = hn::LoadU(d, start + static_cast<std::int64_t>(R) * start_stride + lanes)),
         ...);
    } else {
        ((left[R] = hn::Zero(d), right[R] = hn::Zero(d)), ...);
    }
    for (std::int64_t k = 0; k < steps; ++k) {
        const V b_left = hn::Load(d, b), b_right = hn::Load(d, b + lanes);
        V x;
        ((x = hn::Set(d, a[R]), left[R] = hn::MulAdd(x, b_left, left[R]), right[R] = hn::MulAdd(x, b_right, right[R])),
         ...);
        a += sizeof...(R);
        b += 2 * lanes;
    }
    ((hn::StoreU(left[R], d, c + static_cast<std::int64_t>(R) * c_stride),
      hn::StoreU(right[R], d, c + static_cast<std::int64_t>(R) * c_stride + lanes)),
     ...);
}

class Product {
public:
    explicit Product(const ProductTask& task) : t_(task), width_(Panel()) {}

    void Run() {
        for (std::int64_t first = 0; first < t_.left.columns; first += kProductSteps) {
            const std::int64_t steps = HWY_MIN(kProductSteps, t_.left.columns - first);
            PackLeft(first, steps);
            for (std::int64_t p = t_.panel_begin; p < t_.panel_end; ++p) {
                const float* right = t_.right + p * width_ * t_.left.columns + first * width_;
                for (std::int64_t row = t_.row_begin; row < t_.row_end; row += kRows) {
                    Block(row, p * width_, t_.scratch + (row - t_.row_begin) * steps, right, steps, first == 0);
                }
            }
        }
        executed_flops(2 * (t_.row_end - t_.row_begin) * (t_.panel_end - t_.panel_begin) * width_ * t_.left.columns);
    }

private:
    /// Groups of kRows rows: [group][k][kRows], the last one filled up with zeros.
    void PackLeft(std::int64_t first, std::int64_t steps) {
        const MatrixView& left = t_.left;
        const float* begin = left.data + t_.row_begin * left.row_stride + first * left.column_stride;
        const std::int64_t rows = t_.row_end - t_.row_begin, whole = rows / kRows * kRows;
        if (left.column_stride == 1) {
            for (std::int64_t row = 0; row < rows; row += kRows) {
                PackColumns(begin + row * left.row_stride, left.row_stride, HWY_MIN(kRows, rows - row), steps, kRows,
                            t_.scratch + row * steps);
            }
            return;
        }
        for (std::int64_t k = 0; k < steps; ++k) {
            const float* from = begin + k * left.column_stride;
            float* to = t_.scratch + k * kRows;
            for (std::int64_t row = 0; row < whole; row += kRows) CopyGroup(from + row, to + row * steps);
            for (std::int64_t r = whole; r < rows; ++r) to[whole * steps + r - whole] = from[r];
            for (std::int64_t r = rows; rows > whole && r < whole + kRows; ++r) to[whole * steps + r - whole] = 0.0f;
        }
    }

    void Block(std::int64_t row, std::int64_t column, const float* left, const float* right, std::int64_t steps,
               bool begins) {
        const ProductTarget& to = t_.target;
        float* c = to.data + row * to.row_stride + column;
        const float* start = c;
        std::int64_t stride = to.row_stride;
        if (begins && !to.accumulate) {
            start = to.bias != nullptr ? to.bias + column : nullptr;
            stride = 0;
            if (to.addend != nullptr) {
                start = to.addend + row * to.addend_stride + column;
                stride = to.addend_stride;
            }
        }
        const std::int64_t rows = HWY_MIN(kRows, t_.row_end - row), columns = HWY_MIN(width_, t_.columns - column);
        if (rows == kRows && columns == width_) {
            RegisterBlock(std::make_index_sequence<kRows>(), left, right, steps, start, stride, c, to.row_stride);
            return;
        }
        HWY_ALIGN float edge[kRows * 2 * hn::MaxLanes(F32())] = {};
        for (std::int64_t r = 0; start != nullptr && r < rows; ++r) {
            for (std::int64_t x = 0; x < columns; ++x) edge[r * width_ + x] = start[r * stride + x];
        }
        RegisterBlock(std::make_index_sequence<kRows>(), left, right, steps, edge, width_, edge, width_);
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t x = 0; x < columns; ++x) c[r * to.row_stride + x] = edge[r * width_ + x];
        }
    }

    const ProductTask& t_;
    const std::int64_t width_;
};

void MultiplyTile(const ProductTask& task) {
    Product(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(PackRight);
HWY_EXPORT(MultiplyTile);

void pack_right(const PackRightTask& task) {
    HWY_DYNAMIC_DISPATCH(PackRight)(task);
}

void multiply_tile(const ProductTask& task) {
    HWY_DYNAMIC_DISPATCH(MultiplyTile)(task);
}

std::int64_t product_scratch(std::int64_t rows) {
    return (rows + kMostRows - 1) / kMostRows * kMostRows * kProductSteps;
}

}  // namespace headscope::kernels::cpu
#endif
