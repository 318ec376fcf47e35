// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/stored_tensor.h"

#include <ATen/ops/embedding.h>

#include "core/checkpoint/adapter.h"
#include "core/checkpoint/not_finite.h"

namespace headscope::checkpoint {
namespace {

/// Merging an adapter rounds to the type asked for: what is merged is held in float32.
LoadAs held_as(const Checkpoint& file, const std::string& tensor) {
    return file.adapter() && file.adapter()->changes(tensor) ? LoadAs::float32 : LoadAs::stored;
}

}  // namespace

StoredTensor::StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation)
    : numbers_(file.load(tensor, held_as(file, tensor), cancellation)) {}

void StoredTensor::copy_to(const at::Tensor& into) const {
    into.copy_(numbers_.view(into.sizes()));
}

at::Tensor StoredTensor::rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const {
    return numbers_.narrow(0, first, count).to(type);
}

at::Tensor StoredTensor::rows(const at::Tensor& ids, c10::ScalarType type) const {
    return at::embedding(numbers_, ids).to(type);
}

std::int64_t StoredTensor::not_finite() const {
    return count_not_finite(numbers_);
}

}  // namespace headscope::checkpoint
