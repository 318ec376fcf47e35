// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace headscope::checkpoint {

/// LoRA's change of a matrix (arXiv 2106.09685), in memory as the adapter has it: scale * B A. Immutable. Threads:
/// const members from several at once; products use LibTorch's threads of the caller.
class LowRankUpdate {
public:
    /// `a` [r, in] and `b` [out, r], of any floating types. `transposed`: the matrix is [in, out].
    LowRankUpdate(at::Tensor a, at::Tensor b, double scale, bool transposed);

    std::int64_t rows() const;
    std::int64_t columns() const;
    /// Rows of a block.
    std::int64_t block_rows() const;

    /// Adds the change to rows of the matrix. Products are of whole blocks of rows, which begin at multiples of
    /// block_rows(): a row has the same bits however many are asked for. The last block stays for the next call.
    /// Threads: one.
    class Adder {
    public:
        /// `type`: float32 or float64. The update must outlive this.
        Adder(const LowRankUpdate& update, c10::ScalarType type);
        /// Changes `numbers` [n, columns] of that type: rows [first, first + n) of the matrix.
        void add(std::int64_t first, const at::Tensor& numbers);

    private:
        void compute(std::int64_t begin);

        const LowRankUpdate& update_;
        at::Tensor a_, b_;
        at::Tensor memory_;        ///< of a block
        at::Tensor block_;         ///< its rows that there are
        std::int64_t begin_ = -1;  ///< row that the block begins at; -1: none
    };

private:
    at::Tensor a_, b_;
    double scale_;
    bool transposed_;
};

}  // namespace headscope::checkpoint
