// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/waiting_tensors.h"

#include <ATen/ops/empty_strided.h>

#include "core/model/device.h"

namespace headscope::model {

void WaitingTensors::put(Slot& slot, at::Tensor tensor) {
    const std::uint64_t bytes = tensor.nbytes();
    if (static_cast<double>(held_ + bytes) <= place_.memory_bytes) {
        held_ += bytes;
        slot.tensor_ = std::move(tensor);
        return;
    }
    const at::Tensor dense = on_processor(tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous());
    if (!file_) file_.emplace(place_.folder, "hidden states of texts that wait");
    if (bytes > slot.room_) {
        slot.begin_ = end_;
        slot.room_ = bytes;
        end_ += bytes;
    }
    file_->write(dense.const_data_ptr(), static_cast<std::size_t>(bytes), slot.begin_);
    slot.sizes_ = dense.sizes().vec();
    slot.strides_ = dense.strides().vec();
    slot.options_ = tensor.options();
    slot.in_file_ = true;
}

at::Tensor WaitingTensors::read(const Slot& slot) const {
    if (!slot.in_file_) return slot.tensor_;
    const at::Tensor tensor = at::empty_strided(slot.sizes_, slot.strides_, slot.options_.device(at::kCPU));
    file_->read(tensor.mutable_data_ptr(), tensor.nbytes(), slot.begin_);
    return on_device(tensor, slot.options_.device());
}

at::Tensor WaitingTensors::take(Slot& slot) {
    at::Tensor tensor = read(slot);
    if (!slot.in_file_ && tensor.defined()) held_ -= tensor.nbytes();
    slot.tensor_ = at::Tensor();
    slot.in_file_ = false;
    return tensor;
}

}  // namespace headscope::model
