// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Float32 matrix products for training. LibTorch hands float32 products to MKL, which uses half of the vector width of
// an AMD processor with AVX-512 (measured on a Zen 5: 190 against 410 GF/s on two cores) and whose last bits depend on
// the number of threads; here a tile of the result has one owner who adds in a fixed order, so they do not.
//
// Threads: any; work is shared through kernels/parallel.h. Errors: kernels::Error before any work is done.

#include <cstdint>
#include <memory>

namespace headscope::kernels {

/// Element (i, j) of [rows, columns] is at data[i * row_stride + j * column_stride]; one of the strides is 1.
struct MatrixView {
    const float* data = nullptr;
    std::int64_t rows = 0, columns = 0, row_stride = 0, column_stride = 1;
    MatrixView transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// The right factor [k, n] of products, packed once for the chosen SIMD target. Holds a copy of k * n floats.
class PackedRight {
public:
    explicit PackedRight(const MatrixView& right);
    ~PackedRight();
    PackedRight(PackedRight&&) noexcept;
    PackedRight& operator=(PackedRight&&) noexcept;
    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return columns_; }
    const float* data() const;

private:
    struct Memory;
    std::int64_t rows_ = 0, columns_ = 0;
    std::unique_ptr<Memory> memory_;
};

/// Target of a product, [rows, columns] with unit stride in columns, and the term added to it.
struct ProductTarget {
    float* data = nullptr;
    std::int64_t row_stride = 0;
    bool accumulate = false;        ///< to what is there
    const float* bias = nullptr;    ///< or to a row, [columns]
    const float* addend = nullptr;  ///< or to another matrix, whose rows are addend_stride apart
    std::int64_t addend_stride = 0;
};

/// target (+)= left [m, k] right [k, n]; at most one of accumulate, bias and addend. The target may not overlap a
/// factor.
void multiply(const MatrixView& left, const PackedRight& right, const ProductTarget& target);
void multiply(const MatrixView& left, const MatrixView& right, const ProductTarget& target);

}  // namespace headscope::kernels
