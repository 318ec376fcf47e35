// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/packed/packed_tensor.h"

#include <utility>

namespace headscope::checkpoint {

PackedTensor::PackedTensor(std::vector<std::int64_t> shape, std::vector<PackedPart> parts)
    : shape_(std::move(shape)), parts_(std::move(parts)) {}

std::int64_t PackedTensor::rows() const {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape_.size(); ++i) rows *= shape_[i];
    return rows;
}

std::vector<std::int64_t> PackedTensor::entry_shape() const {
    return {shape_.begin() + 1, shape_.end()};
}

PackedPart PackedTensor::entry_part(std::size_t part, std::int64_t index) const {
    const PackedPart& whole = parts_[part];
    const std::uint64_t bytes = whole.bytes / static_cast<std::uint64_t>(shape_[0]);
    std::vector<std::int64_t> shape = whole.shape;
    if (!shape.empty()) shape.erase(shape.begin());
    return {whole.tensor, std::move(shape), bytes, whole.begin + static_cast<std::uint64_t>(index) * bytes};
}

std::int64_t PackedTensor::columns() const {
    return shape_.empty() ? 1 : shape_.back();
}

}  // namespace headscope::checkpoint
