// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/checkpoint/stored_tensor.h"

namespace headscope::model {

/// The most tokens of a pass that multiplies packed matrices.
inline constexpr std::int64_t kFewTokens = 8;

/// A matrix whose rows are multiplied as the file has them, block by block, without a copy in float32. For few tokens:
/// for many, a copy and a matrix product take less time. Immutable; const members are safe from several threads.
class PackedMatrix {
public:
    /// True for a matrix of the file that lies there in blocks which have a product, and that no adapter changes.
    static bool takes(const checkpoint::Checkpoint& file, const std::string& tensor);

    /// Tensors one below the other, all of a type that takes() accepts and with as many columns.
    explicit PackedMatrix(std::vector<std::shared_ptr<const checkpoint::StoredTensor>> parts);

    std::int64_t rows() const { return rows_; }
    std::int64_t columns() const { return columns_; }
    /// x [.., columns] float32 times the transposed matrix: [.., rows].
    at::Tensor operator()(const at::Tensor& x) const;

private:
    struct Piece {
        std::uint32_t type = 0;
        std::int64_t rows = 0;
        const std::byte* blocks = nullptr;
        std::vector<std::byte> own;  ///< rows put in order, where the file has another one
    };

    std::vector<std::shared_ptr<const checkpoint::StoredTensor>> parts_;
    std::vector<Piece> pieces_;
    std::int64_t rows_ = 0, columns_ = 0;
};

}  // namespace headscope::model
