// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/streams.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

namespace headscope::model {

std::optional<c10::Stream> side_stream(const c10::Device& device) {
    try {
        return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    } catch (const c10::Error&) {
        return std::nullopt;  // LibTorch's guards of devices with one stream refuse
    }
}

at::Tensor memory_for_copies(std::int64_t elements, at::ScalarType type, c10::DeviceType device) {
    try {
        c10::Allocator* const allocator = at::globalContext().getPinnedMemoryAllocator(device);
        return at::detail::empty_generic({elements}, allocator, c10::DispatchKeySet(c10::DispatchKey::CPU), type,
                                         std::nullopt);
    } catch (const c10::Error&) {
        return at::empty({elements}, at::TensorOptions().device(at::kCPU).dtype(type));
    }
}

void copy_on(const c10::Stream& stream, const at::Tensor& to, const at::Tensor& from) {
    const c10::StreamGuard guard(stream);
    to.copy_(from, true);
}

}  // namespace headscope::model
