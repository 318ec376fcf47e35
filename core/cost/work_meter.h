// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Work that a computation really did: floating-point operations of the operators that ran, and memory of tensors.
// LibTorch's operators are counted by its recorder, ours by themselves (kernels/flop_counter.h). Matrix products only,
// a multiply-add being two, as in the papers' formulas.

#include <cstdint>
#include <memory>

namespace headscope::cost {

/// Meters while it lives what the calling thread does (our kernels: what all threads do). One at a time a process.
class WorkMeter {
public:
    WorkMeter();
    ~WorkMeter();
    WorkMeter(const WorkMeter&) = delete;
    WorkMeter& operator=(const WorkMeter&) = delete;

    std::int64_t flops() const;  ///< so far
    /// Bytes of tensors that were made since the meter began and still live, now and at most. Scratch memory of
    /// kernels, which is small and not a tensor, is not in it.
    std::int64_t bytes() const;
    std::int64_t peak_bytes() const;
    /// peak_bytes() is bytes() from now on.
    void restart_peak();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headscope::cost
