// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/stored_tensor.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <ATen/ops/_unique2.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/not_finite.h"
#include "core/checkpoint/tensor_reader.h"

namespace headscope::checkpoint {
namespace {

std::string place_of(const Checkpoint& file, const std::string& tensor) {
    return shown(file.path()) + ", tensor \"" + escaped(tensor) + '"';
}

/// The type in which numbers that become `type` are merged.
c10::ScalarType exact_type(c10::ScalarType type) {
    return type == c10::ScalarType::Double ? type : c10::ScalarType::Float;
}

/// Rows that `ids` (int64, of any shape) name, [.., columns]: `read` writes each of them once, in ascending order, into
/// [1, columns].
at::Tensor gather_rows(const at::Tensor& ids, std::int64_t columns, c10::ScalarType type,
                       const std::function<void(std::int64_t row, const at::Tensor& into)>& read) {
    const auto [numbers, place, counts] = at::_unique2(ids, true, true);
    const at::Tensor found = at::empty({numbers.numel(), columns}, at::TensorOptions(type));
    for (std::int64_t i = 0; i < numbers.numel(); ++i) read(numbers[i].item<std::int64_t>(), found.narrow(0, i, 1));
    return at::embedding(found, place);
}

}  // namespace

StoredTensor::StoredTensor(const Checkpoint& file, const std::string& tensor, const Cancellation& cancellation) {
    const TensorInfo& info = file.tensor(tensor);
    try {
        const Adapter* adapter = file.adapter();
        if (const TensorInfo* own = adapter ? adapter->own(tensor) : nullptr)
            numbers_ = load_tensor(adapter->file(), *own, own->type, cancellation);
        else
            read(file, info, cancellation);
        if (adapter) update_ = adapter->update(tensor, cancellation);
    } catch (...) {
        throw current_error(place_of(file, tensor));
    }
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
        throw current_error(place_of(file, info.name));
    }
}

void StoredTensor::copy_to(const at::Tensor& into) const {
    if (update_) {
        const c10::ScalarType exact = exact_type(into.scalar_type());
        LowRankUpdate::Adder adder(*update_, exact);
        merge(0, into, adder, exact);
        return;
    }
    if (packed_)
        packed_->unpack(0, packed_->source().tensor->rows(), into);
    else
        into.copy_(numbers_.view(into.sizes()));
}

void StoredTensor::merge(std::int64_t first, const at::Tensor& into, LowRankUpdate::Adder& adder,
                         c10::ScalarType exact) const {
    if (into.dim() > 2) {
        const std::int64_t rows = into.numel() / into.size(0) / into.size(-1);
        for (std::int64_t i = 0; i < into.size(0); ++i) merge(first + i * rows, into.select(0, i), adder, exact);
        return;
    }
    const std::int64_t step = update_->block_rows();
    for (std::int64_t done = 0; done < into.size(0); done += step) {
        const std::int64_t count = std::min(step, into.size(0) - done);
        const at::Tensor numbers = plain_rows(first + done, count, exact);
        adder.add(first + done, numbers);
        into.narrow(0, done, count).copy_(numbers);
    }
}

at::Tensor StoredTensor::rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const {
    if (!update_) return plain_rows(first, count, type);
    const c10::ScalarType exact = exact_type(type);
    LowRankUpdate::Adder adder(*update_, exact);
    if (is_transposed()) {
        const at::Tensor merged = packed_->all(exact).narrow(0, first, count).contiguous();
        adder.add(first, merged);
        return merged.to(type);
    }
    at::Tensor numbers = at::empty({count, update_->columns()}, at::TensorOptions(type));
    merge(first, numbers, adder, exact);
    return numbers;
}

at::Tensor StoredTensor::plain_rows(std::int64_t first, std::int64_t count, c10::ScalarType type) const {
    if (!packed_) return numbers_.narrow(0, first, count).to(type, false, update_ != nullptr);
    const PackedTensor& tensor = *packed_->source().tensor;
    if (tensor.shape().size() != 2 || is_transposed()) return packed_->all(type).narrow(0, first, count);
    at::Tensor numbers = at::empty({count, tensor.columns()}, at::TensorOptions(type));
    packed_->unpack(first, count, numbers);
    return numbers;
}

at::Tensor StoredTensor::rows(const at::Tensor& ids, c10::ScalarType type) const {
    if (update_) {
        const c10::ScalarType exact = exact_type(type);
        LowRankUpdate::Adder adder(*update_, exact);
        return gather_rows(ids, update_->columns(), type,
                           [&](std::int64_t row, const at::Tensor& into) { merge(row, into, adder, exact); });
    }
    if (!packed_) return at::embedding(numbers_, ids).to(type);
    if (is_transposed()) return at::embedding(packed_->all(type), ids);
    return gather_rows(ids, packed_->source().tensor->columns(), type,
                       [this](std::int64_t row, const at::Tensor& into) { packed_->unpack(row, 1, into); });
}

std::int64_t StoredTensor::not_finite() const {
    return is_made() ? 0 : count_not_finite(numbers_);
}

FileRows::FileRows(std::shared_ptr<const Checkpoint> file, std::string tensor, const Cancellation& cancellation)
    : file_(std::move(file)), tensor_(std::move(tensor)) {
    if (const Adapter* adapter = file_->adapter()) update_ = adapter->update(tensor_, cancellation);
}

at::Tensor FileRows::rows(const at::Tensor& ids, c10::ScalarType type) const {
    const Adapter* adapter = file_->adapter();
    const TensorInfo* own = adapter ? adapter->own(tensor_) : nullptr;
    const TensorInfo& info = own ? *own : file_->tensor(tensor_);
    const InputFile& file = own ? adapter->file() : file_->open_files().at(info.file);
    const c10::ScalarType exact = exact_type(type);
    std::optional<LowRankUpdate::Adder> adder;
    if (update_) adder.emplace(*update_, exact);
    try {
        return gather_rows(ids, info.shape.at(1), type, [&](std::int64_t row, const at::Tensor& into) {
            const at::Tensor numbers = load_row(file, info, row, Cancellation());
            if (!adder) {
                into.copy_(numbers);
                return;
            }
            const at::Tensor merged = numbers.to(exact);
            adder->add(row, merged);
            into.copy_(merged);
        });
    } catch (...) {
        throw current_error(place_of(*file_, tensor_));
    }
}

std::int64_t load_into(const Checkpoint& file, const std::string& tensor, const at::Tensor& into,
                       const Cancellation& cancellation) {
    const TensorInfo& info = file.tensor(tensor);
    try {
        const Adapter* adapter = file.adapter();
        const auto update = adapter ? adapter->update(tensor, cancellation) : nullptr;
        const c10::ScalarType type = into.scalar_type();
        if (update && type != exact_type(type)) {
            const StoredTensor stored(file, tensor, cancellation);
            if (stored.is_transposed())
                into.copy_(stored.rows(0, into.size(0), type));
            else
                stored.copy_to(into);
            return count_not_finite(into);
        }
        const TensorInfo* own = adapter ? adapter->own(tensor) : nullptr;
        std::int64_t not_finite = 0;
        if (own) {
            load_tensor_into(adapter->file(), *own, into, cancellation, &not_finite);
        } else if (!info.packed) {
            load_tensor_into(file.open_files().at(info.file), info, into, cancellation, &not_finite);
        } else {
            const PackedBytes packed(file.open_files(), info.packed, cancellation, true);
            packed.unpack(0, info.packed->tensor->rows(), info.packed->transposed ? into.transpose(-1, -2) : into);
            not_finite = update ? 0 : count_not_finite(into);
        }
        if (!update) return not_finite;
        LowRankUpdate::Adder(*update, type).add(0, into);
        return count_not_finite(into);
    } catch (...) {
        throw current_error(place_of(file, tensor));
    }
}

}  // namespace headscope::checkpoint
