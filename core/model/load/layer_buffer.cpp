// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/layer_buffer.h"

#include <algorithm>
#include <utility>

#include "core/checkpoint/adapter.h"
#include "core/checkpoint/packed/packed_source.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::model {
namespace {

constexpr std::int64_t kAligned = 64;  ///< bytes, as LibTorch's own tensors begin

}  // namespace

LayerBuffer::LayerBuffer(std::shared_ptr<const checkpoint::Checkpoint> file, checkpoint::LoadAs precision)
    : file_(std::move(file)), precision_(precision) {}

at::ScalarType LayerBuffer::type_of(const TensorPlan::Want& want) const {
    const checkpoint::DataType stored = file_->tensor(want.tensor).type;
    return checkpoint::torch_type(checkpoint::loaded_type(stored, want.precision(precision_))).value();
}

bool LayerBuffer::lies_transposed(const TensorPlan::Want& want) const {
    const auto& packed = file_->tensor(want.tensor).packed;
    const bool merged = file_->adapter() && file_->adapter()->changes(want.tensor);
    return packed && packed->transposed && !merged && want.row < 0 && want.heads == 0;
}

std::vector<std::int64_t> LayerBuffer::memory_shape(const TensorPlan::Want& want) const {
    std::vector<std::int64_t> shape = want.sizes();
    if (want.row >= 0) shape.at(0) = want.rows;
    if (lies_transposed(want)) std::swap(shape.at(shape.size() - 1), shape.at(shape.size() - 2));
    return shape;
}

std::int64_t LayerBuffer::room_of(const TensorPlan::Want& want) const {
    auto bytes = static_cast<std::int64_t>(c10::elementSize(type_of(want)));
    for (const std::int64_t size : memory_shape(want)) bytes *= size;
    return (bytes + kAligned - 1) / kAligned * kAligned;
}

void LayerBuffer::reserve(std::int64_t bytes) {
    size_ = std::max(size_, bytes);
}

const at::Tensor& LayerBuffer::own_bytes() {
    if (!bytes_.defined()) bytes_ = checkpoint::mapped_bytes(size_);
    return bytes_;
}

at::Tensor LayerBuffer::place(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin) const {
    const std::vector<std::int64_t> shape = memory_shape(want);
    const at::ScalarType type = type_of(want);
    auto size = static_cast<std::int64_t>(c10::elementSize(type));
    for (const std::int64_t length : shape) size *= length;
    return bytes.narrow(0, begin, size).view(type).view(shape);
}

at::Tensor LayerBuffer::view(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin) const {
    const at::Tensor whole = place(bytes, want, begin);
    return want.transposed != lies_transposed(want) ? whole.transpose(-1, -2) : whole;
}

at::Tensor LayerBuffer::write(const at::Tensor& bytes, const TensorPlan::Want& want, std::int64_t begin,
                              const checkpoint::StoredTensor& stored) const {
    const at::Tensor whole = place(bytes, want, begin);
    if (want.heads > 0) {
        std::vector<std::int64_t> pieces{want.parts, want.heads, whole.size(0) / (want.parts * want.heads)};
        pieces.insert(pieces.end(), whole.sizes().begin() + 1, whole.sizes().end());
        stored.copy_to(whole.view(pieces).transpose(0, 1));
        return whole;
    }
    const at::Tensor own = want.row >= 0 ? whole.narrow(0, want.row, want.sizes().at(0)) : whole;
    if (!lies_transposed(want) && stored.is_transposed())
        own.copy_(stored.rows(0, own.size(0), own.scalar_type()));
    else
        stored.copy_to(own);
    return own;
}

void LayerBuffer::show(const TensorPlan::Want& want, std::int64_t begin) {
    *want.into = view(own_bytes(), want, begin);
}

at::Tensor LayerBuffer::fill(const TensorPlan::Want& want, std::int64_t begin, const checkpoint::StoredTensor& stored) {
    show(want, begin);
    return write(own_bytes(), want, begin, stored);
}

at::Tensor LayerBuffer::fill_entry(const TensorPlan::Want& want, std::int64_t begin, std::int64_t index,
                                   const checkpoint::StoredTensor& stored) {
    const at::Tensor own = place(own_bytes(), want, begin).select(0, index);
    stored.copy_to(own);
    return own;
}

void add_not_finite(std::vector<NotFinite>& found, const std::string& tensor, std::int64_t numbers,
                    std::int64_t elements) {
    if (numbers == 0) return;
    const auto same =
        std::find_if(found.begin(), found.end(), [&tensor](const NotFinite& one) { return one.tensor == tensor; });
    if (same == found.end())
        found.push_back({tensor, numbers, elements});
    else
        same->numbers += numbers;
}

}  // namespace headscope::model
