// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/stored_tensor.h"

#include <ATen/ops/_unique2.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/tensor_reader.h"

namespace headscope::checkpoint {

StoredTensor::StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation) {
    const TensorInfo& info = file.tensor(tensor);
    // Merging an adapter rounds to the type asked for: what is merged is held in float32.
    if (file.adapter() && file.adapter()->changes(tensor))
        numbers_ = file.load(tensor, LoadAs::float32, cancellation);
    else
        read(file, info, cancellation);
}

StoredTensor::StoredTensor(const Checkpoint& file, const TensorInfo& entry, const Cancellation& cancellation) {
    read(file, entry, cancellation);
}

void StoredTensor::read(const Checkpoint& file, const TensorInfo& info, const Cancellation& cancellation) {
    try {
        if (info.packed)
            packed_.emplace(file.open_files(), info.packed, cancellation);
        else
            numbers_ = load_tensor(file.open_files().at(info.file), info, info.type, cancellation);
    } catch (...) {
        throw current_error(shown(file.path()) + ", tensor \"" + escaped(info.name) + '"');
    }
}

void StoredTensor::copy_to(const at::Tensor& into) const {
    if (packed_)
        packed_->unpack(0, packed_->source().tensor->rows(), into);
    else
        into.copy_(numbers_.view(into.sizes()));
}

at::Tensor StoredTensor::rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const {
    if (!packed_) return numbers_.narrow(0, first, count).to(type);
    const PackedTensor& tensor = *packed_->source().tensor;
    if (tensor.shape().size() != 2 || is_transposed()) return packed_->all(type).narrow(0, first, count);
    at::Tensor numbers = at::empty({count, tensor.columns()}, at::TensorOptions(type));
    packed_->unpack(first, count, numbers);
    return numbers;
}

at::Tensor StoredTensor::rows(const at::Tensor& ids, c10::ScalarType type) const {
    if (!packed_) return at::embedding(numbers_, ids).to(type);
    if (is_transposed()) return at::embedding(packed_->all(type), ids);
    return gather_rows(ids, packed_->source().tensor->columns(), type,
                       [this](std::int64_t row, const at::Tensor& into) { packed_->unpack(row, 1, into); });
}

std::int64_t StoredTensor::not_finite() const {
    return packed_ ? 0 : count_not_finite(numbers_);
}

std::int64_t load_into(const Checkpoint& file, const std::string& tensor, const at::Tensor& into,
                       const Cancellation& cancellation) {
    const TensorInfo& info = file.tensor(tensor);
    try {
        std::int64_t not_finite = 0;
        if (!info.packed) {
            load_tensor_into(file.open_files().at(info.file), info, into, cancellation, &not_finite);
            return not_finite;
        }
        const PackedBytes packed(file.open_files(), info.packed, cancellation, true);
        packed.unpack(0, info.packed->tensor->rows(), info.packed->transposed ? into.transpose(-1, -2) : into);
        return count_not_finite(into);
    } catch (...) {
        throw current_error(shown(file.path()) + ", tensor \"" + escaped(info.name) + '"');
    }
}

at::Tensor gather_rows(const at::Tensor& ids, std::int64_t columns, c10::ScalarType type,
                       const std::function<void(std::int64_t row, const at::Tensor& into)>& read) {
    const auto [numbers, place, counts] = at::_unique2(ids, true, true);
    const at::Tensor found = at::empty({numbers.numel(), columns}, at::TensorOptions(type));
    for (std::int64_t i = 0; i < numbers.numel(); ++i) read(numbers[i].item<std::int64_t>(), found.narrow(0, i, 1));
    return at::embedding(found, place);
}

}  // namespace headscope::checkpoint
