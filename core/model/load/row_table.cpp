// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/row_table.h"

#include <utility>

#include "core/model/device.h"

namespace headscope::model {

RowTable::RowTable(std::shared_ptr<const checkpoint::Checkpoint> file, std::string tensor, c10::ScalarType type,
                   bool kept, const Cancellation& cancellation)
    : file_(std::move(file)), tensor_(std::move(tensor)), type_(type), kept_(kept) {
    kept_ = kept_ || file_->is_packed(tensor_);  // quantized ones are small
    size_ = file_->tensor(tensor_).shape.at(0);
    columns_ = file_->tensor(tensor_).shape.at(1);
    takes_product_ = type_ == c10::ScalarType::Float && PackedMatrix::takes(*file_, tensor_);
    if (kept_)
        held_ = std::make_shared<const checkpoint::StoredTensor>(*file_, tensor_, cancellation);
    else
        single_.emplace(file_, tensor_, cancellation);
}

at::Tensor RowTable::rows(const at::Tensor& ids) const {
    const at::Tensor numbers = on_processor(ids);
    return on_device(held_ ? held_->rows(numbers, type_) : single_->rows(numbers, type_), ids.device());
}

at::Tensor RowTable::rows(std::int64_t first, std::int64_t count) const {
    if (!held_) held_ = std::make_shared<const checkpoint::StoredTensor>(*file_, tensor_, Cancellation());
    return held_->rows(first, count, type_);
}

const PackedMatrix* RowTable::product() const {
    if (!few_ || !takes_product_ || !held_) return nullptr;
    if (!product_) product_ = std::make_unique<const PackedMatrix>(std::vector{held_});
    return product_.get();
}

void RowTable::release() {
    if (!kept_) held_.reset();
}

}  // namespace headscope::model
