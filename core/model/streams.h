// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Streams of any device of LibTorch but the processor, and copies on them. Threads: any.

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace headscope::model {

/// The calling thread's.
inline c10::Stream current_stream(const c10::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// One that works while others do; empty where the device has no other.
std::optional<c10::Stream> side_stream(const c10::Device& device);

/// The same, or the calling thread's where the device has no other.
inline c10::Stream another_stream(const c10::Device& device) {
    return side_stream(device).value_or(current_stream(device));
}

/// Work that `later` gets from now on begins when that of `earlier` so far is done.
inline void follow(const c10::Stream& later, const c10::Stream& earlier) {
    const c10::DeviceGuard guard(earlier.device());  // ~Event returns to it, not to the first GPU
    c10::Event done(earlier.device_type());
    done.record(earlier);
    done.block(later);
}

/// Memory of the processor that copies from and to a device use while the processor goes on: pinned where LibTorch has
/// such memory for the device, else plain.
at::Tensor memory_for_copies(std::int64_t elements, at::ScalarType type, c10::DeviceType device);

/// Queues a copy on `stream`. Both tensors must last, and the source stay as it is, until the copy is done.
void copy_on(const c10::Stream& stream, const at::Tensor& to, const at::Tensor& from);

}  // namespace headscope::model
