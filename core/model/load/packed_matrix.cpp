// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/packed_matrix.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>

#include "core/checkpoint/adapter.h"
#include "core/model/device.h"
#include "kernels/packed/packed_product.h"

namespace headscope::model {

using checkpoint::PackedBytes;

bool PackedMatrix::takes(const checkpoint::Checkpoint& file, const std::string& tensor) {
    const auto& packed = file.tensor(tensor).packed;
    if (!packed || packed->transposed || packed->tensor->shape().size() != 2) return false;
    if (file.adapter() && file.adapter()->changes(tensor)) return false;
    const auto blocks = packed->tensor->block_rows();
    if (!blocks) return false;
    const auto type = static_cast<kernels::PackedType>(blocks->type);
    // Plain numbers give the bits that they give in float32.
    return type != kernels::PackedType::f16 && type != kernels::PackedType::bf16 &&
           kernels::packed_product_supported(type);
}

PackedMatrix::PackedMatrix(std::vector<std::shared_ptr<const checkpoint::StoredTensor>> parts)
    : parts_(std::move(parts)) {
    for (const auto& part : parts_) {
        const PackedBytes& packed = *part->packed();
        const checkpoint::PackedTensor& tensor = *packed.source().tensor;
        const checkpoint::BlockRows blocks = tensor.block_rows().value();
        Piece piece{blocks.type, tensor.rows(), packed.blocks_of_row(0), {}};
        bool in_order = true;
        for (std::int64_t row = 1; row < piece.rows && in_order; ++row)
            in_order = packed.blocks_of_row(row) == piece.blocks + row * blocks.bytes;
        if (!in_order) {
            piece.own.resize(static_cast<std::size_t>(piece.rows * blocks.bytes));
            for (std::int64_t row = 0; row < piece.rows; ++row)
                std::copy_n(packed.blocks_of_row(row), blocks.bytes, piece.own.begin() + row * blocks.bytes);
        }
        rows_ += piece.rows;
        columns_ = tensor.columns();
        pieces_.push_back(std::move(piece));
    }
}

at::Tensor PackedMatrix::operator()(const at::Tensor& x) const {
    const at::Tensor tokens = on_processor(x.reshape({-1, columns_})).contiguous();
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = rows_;
    at::Tensor y = at::empty(shape, tokens.options());
    kernels::PackedProduct product;
    product.columns = columns_;
    product.x = tokens.const_data_ptr<float>();
    product.tokens = tokens.size(0);
    product.x_stride = columns_;
    product.y = y.mutable_data_ptr<float>();
    product.y_stride = rows_;
    for (const Piece& piece : pieces_) {
        product.type = static_cast<kernels::PackedType>(piece.type);
        product.blocks = piece.own.empty() ? piece.blocks : piece.own.data();
        product.rows = piece.rows;
        kernels::packed_product(product);
        product.y += piece.rows;
    }
    return on_device(y, x.device());
}

}  // namespace headscope::model
