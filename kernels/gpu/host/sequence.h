// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One sequence of a batch on the device: operands and rule. Operands in memory of the processor are copied there, and
// results back; operands in GPU memory are used where they are.

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/cpu/attention/workspace.h"
#include "kernels/gpu/host/plugin.h"

namespace headscope::kernels::gpu {

/// The cancel flag of a call.
HsCall call_of(const std::atomic<bool>* cancel);

/// Sequence b of a view, [heads, length, size].
HsMatrix upload(Memory& memory, const TensorView& view, std::int64_t b);

/// The rule of a sequence with its tables.
HsRule upload(Memory& memory, const cpu::Sequence& sequence);

/// q, k, v, sizes and rule; the rest of the fields is zero.
HsAttention upload(Memory& memory, const AttentionInput& input, const cpu::Sequence& sequence, std::int64_t b);

/// A result of sequence b, [heads, length, size], which fetch() copies to its place.
class Result {
public:
    Result(Memory& memory, const MutableView& place, Device device, std::int64_t b, std::int64_t heads,
           std::int64_t length, std::int64_t size);
    const HsTarget& target() const { return target_; }
    void fetch();

private:
    Memory& memory_;
    MutableView place_;
    bool copied_ = false;
    std::int64_t b_, heads_, length_, size_;
    HsTarget target_{};
};

}  // namespace headscope::kernels::gpu
