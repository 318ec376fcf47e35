// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/exchange/block_sums.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>

#include <memory>
#include <utility>

#include "core/model/streams.h"

namespace headscope::training {

void HostSums::start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) {
    const at::NoGradGuard no_gradient;
    Processes::Block block;
    block.count = end - begin;
    block.type = flat.scalar_type() == at::kBFloat16 ? Processes::Type::bfloat16 : Processes::Type::float32;
    if (flat.is_cpu())
        block.values = static_cast<char*>(flat.mutable_data_ptr()) + begin * flat.element_size();
    else
        copy_there_and_back(flat.narrow(0, begin, block.count), copies_[begin], block);
    processes_.sum_in_background(std::move(block));
}

void HostSums::copy_there_and_back(const at::Tensor& part, at::Tensor& copy, Processes::Block& block) {
    const c10::Device device = part.device();
    if (!copy.defined() || copy.scalar_type() != part.scalar_type() || copy.numel() != part.numel())
        copy = model::memory_for_copies(part.numel(), part.scalar_type(), device.type());
    if (!from_device_) from_device_ = model::another_stream(device);
    if (!to_device_) to_device_ = model::another_stream(device);
    block.values = copy.mutable_data_ptr();
    model::follow(*from_device_, model::current_stream(device));
    model::copy_on(*from_device_, copy, part);
    auto copied = std::make_shared<c10::Event>(device.type());
    copied->record(*from_device_);
    block.ready = [copied = std::move(copied), device]() mutable {
        const c10::DeviceGuard guard(device);  // ~Event returns to it, not to the first GPU
        copied->synchronize();
        copied.reset();
    };
    block.done = [part, copy, stream = *to_device_] {
        const at::NoGradGuard none;  // of this thread
        model::copy_on(stream, part, copy);
    };
}

void HostSums::finish(const at::Tensor& flat) {
    processes_.wait();
    if (!flat.is_cpu() && to_device_) model::follow(model::current_stream(flat.device()), *to_device_);
}

}  // namespace headscope::training
