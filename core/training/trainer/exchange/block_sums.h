// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sums of a flat tensor over several processes, block by block. Threads: start() on any, one call after the other.

#include <cstdint>
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
    /// Returns when all elements of `flat`, each of which was started, are sums. Throws Error.
    virtual void finish(const at::Tensor& flat) = 0;
};

/// In memory of the processor, by MPI: the same bits wherever the tensor lies. A block of a device's memory is copied
/// to the processor while the device computes on, and all blocks are copied back at the end.
class HostSums final : public BlockSums {
public:
    explicit HostSums(Processes& processes) : processes_(processes) {}

    void start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) override;
    void finish(const at::Tensor& flat) override;

private:
    Processes& processes_;
    at::Tensor copy_;                    ///< of a device's tensor, in memory of the processor
    std::optional<c10::Stream> stream_;  ///< of the copies to it
};

}  // namespace headscope::training
