// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/copy_slots.h"

#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "core/model/streams.h"

namespace headscope::model {

std::unique_ptr<CopySlots> CopySlots::open(const at::Device& device, std::int64_t bytes, Fill fill) {
    const std::optional<c10::Stream> stream = side_stream(device);
    return stream ? std::make_unique<CopySlots>(*stream, bytes, std::move(fill)) : nullptr;
}

CopySlots::CopySlots(const c10::Stream& stream, std::int64_t bytes, Fill fill)
    : fill_(std::move(fill)),
      bytes_(bytes),
      stream_(stream),
      slots_{Slot(stream.device_type()), Slot(stream.device_type())},
      ahead_([this](std::int64_t number, const Cancellation& stop) { return load(number, stop); }) {}

CopySlots::~CopySlots() {
    ahead_.stop();
    try {
        ending_.reset_device(stream_.device());  // ~Event returns to it, not to the first GPU
        release();
    } catch (const c10::Error&) {
        // A device that failed copies no longer.
    }
}

at::Tensor CopySlots::take(std::int64_t number, const Cancellation* cancellation) {
    const c10::OptionalDeviceGuard device(stream_.device());
    const c10::Stream computing = current_stream(stream_.device());
    if (slots_.back().there.defined())
        slots_[current_].used.record(computing);
    else
        reserve(computing);
    current_ = ahead_.take(number, cancellation);
    slots_[current_].copied.block(computing);
    return slots_[current_].there;
}

void CopySlots::release() {
    ahead_.drop();
    for (Slot& slot : slots_) {
        slot.copied.synchronize();
        slot.host = slot.there = at::Tensor();
    }
}

/// Work that is queued may still use memory that the device's allocator gives out again.
void CopySlots::reserve(const c10::Stream& computing) {
    for (Slot& slot : slots_) {
        slot.host = memory_for_copies(bytes_, at::kByte, stream_.device_type());
        slot.there = at::empty({bytes_}, at::TensorOptions(stream_.device()).dtype(at::kByte));
        slot.used.record(computing);
    }
}

std::size_t CopySlots::load(std::int64_t number, const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    const c10::OptionalDeviceGuard device(stream_.device());  // events would return this thread to the first GPU
    const std::size_t index = 1 - current_;
    Slot& slot = slots_[index];
    slot.copied.synchronize();
    const std::int64_t bytes = fill_(number, slot.host, cancellation);
    slot.used.block(stream_);
    copy_on(stream_, slot.there.narrow(0, 0, bytes), slot.host.narrow(0, 0, bytes));
    slot.copied.record(stream_);
    return index;
}

}  // namespace headscope::model
