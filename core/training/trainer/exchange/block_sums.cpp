// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/exchange/block_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/training/trainer/exchange/streams.h"

namespace headscope::training {
namespace {

/// Memory of the processor for a tensor like `flat`: pinned where LibTorch has such memory for the device.
at::Tensor memory_for_copy(const at::Tensor& flat) {
    const at::TensorOptions options = at::TensorOptions().dtype(flat.scalar_type()).device(at::kCPU);
    try {
        return at::empty({flat.numel()}, options.pinned_memory(true));
    } catch (const c10::Error&) {
        return at::empty({flat.numel()}, options);
    }
}

/// Copies on `stream` when the current stream of the device has done its work. The result waits for the copy.
std::function<void()> start_copy(const at::Tensor& to, const at::Tensor& from, const c10::Stream& stream) {
    follow(stream, current_stream(from.device()));
    const auto copied = std::make_shared<c10::Event>(from.device().type());
    {
        const c10::StreamGuard guard(stream);
        to.copy_(from, true);
    }
    copied->record(stream);
    return [copied] { copied->synchronize(); };
}

}  // namespace

void HostSums::start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_gradient;
    Processes::Block block;
    block.count = end - begin;
    block.type = flat.scalar_type() == at::kBFloat16 ? Processes::Type::bfloat16 : Processes::Type::float32;
    if (!flat.is_cpu()) {
        if (!copy_.defined() || copy_.scalar_type() != flat.scalar_type()) copy_ = memory_for_copy(flat);
        if (!stream_) stream_ = another_stream(flat.device());
        block.ready = start_copy(copy_.narrow(0, begin, block.count), flat.narrow(0, begin, block.count), *stream_);
    }
    auto* const first = static_cast<char*>((flat.is_cpu() ? flat : copy_).mutable_data_ptr());
    block.values = first + begin * flat.element_size();
    processes_.sum_in_background(std::move(block));
}

void HostSums::finish(const at::Tensor& flat) {
    processes_.wait();
    if (flat.is_cpu()) return;
    const at::NoGradGuard no_gradient;
    if (stream_) follow(current_stream(flat.device()), *stream_);
    flat.copy_(copy_);
}

}  // namespace headscope::training
