// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sums of a flat tensor over several processes, block by block. Threads: start() on any, one call after the other.

#include <cstdint>
#include <map>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include "core/training/trainer/processes.h"

namespace headscope::training {

class BlockSums {
public:
    virtual ~BlockSums() = default;
    /// Begins to add up elements [begin, end) of `flat`, which is contiguous; nothing may write them before finish().
    /// They are complete on the current stream of their device. The order of calls is the same in all processes.
    virtual void start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) = 0;
    /// Returns when all elements of `flat`, each of which was started, are sums for work that is queued on the current
    /// stream from now on. Throws Error.
    virtual void finish(const at::Tensor& flat) = 0;
};

/// In memory of the processor, by MPI: the same bits wherever the tensor lies. A block of a device's memory is copied
/// to the processor, and back when it is a sum, while the device computes.
class HostSums final : public BlockSums {
public:
    explicit HostSums(Processes& processes) : processes_(processes) {}

    void start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) override;
    void finish(const at::Tensor& flat) override;

private:
    /// Sets the members of `block` that sum up `part` of a device's tensor in `copy`; takes that if it does not fit.
    void copy_there_and_back(const at::Tensor& part, at::Tensor& copy, Processes::Block& block);

    Processes& processes_;
    std::map<std::int64_t, at::Tensor> copies_;           ///< of blocks, by their first element
    std::optional<c10::Stream> from_device_, to_device_;  ///< streams of the copies
};

}  // namespace headscope::training
