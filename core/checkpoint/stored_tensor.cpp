// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/stored_tensor.h"

#include <ATen/ops/_unique2.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/not_finite.h"

namespace headscope::checkpoint {

StoredTensor::StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation) {
    const bool merged = file.adapter() && file.adapter()->changes(tensor);
    if (const TensorInfo& info = file.tensor(tensor); info.packed && !merged) {
        try {
            packed_.emplace(file.open_files(), info.packed, cancellation);
        } catch (...) {
            throw current_error(shown(file.path()) + ", tensor \"" + escaped(tensor) + '"');
        }
        return;
    }
    // Merging an adapter rounds to the type asked for: what is merged is held in float32.
    numbers_ = file.load(tensor, merged ? LoadAs::float32 : LoadAs::stored, cancellation);
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
    const auto [numbers, place, counts] = at::_unique2(ids, true, true);
    const at::Tensor found =
        at::empty({numbers.numel(), packed_->source().tensor->columns()}, at::TensorOptions(type));
    for (std::int64_t i = 0; i < numbers.numel(); ++i)
        packed_->unpack(numbers[i].item<std::int64_t>(), 1, found.narrow(0, i, 1));
    return at::embedding(found, place);
}

std::int64_t StoredTensor::not_finite() const {
    return packed_ ? 0 : count_not_finite(numbers_);
}

}  // namespace headscope::checkpoint
