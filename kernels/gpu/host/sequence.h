// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// One sequence of a batch on the device: operands and rule. Operands in memory of the processor are copied there, and
// results back; operands in GPU memory are used where they are.

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
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

/// Notes the products of attention with bfloat16 queries. `others_are_halves`: operands but q, k, v are bfloat16.
void note_products(const HsPlugin& library, const HsAttention& a, bool others_are_halves = true);

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

/// Contiguous numbers that a call reads and writes, or writes alone: a copy on the device, or the place itself in GPU
/// memory. A null place stays null.
class Numbers {
public:
    enum class Use : std::uint8_t { write, change };
    Numbers(Memory& memory, float* place, Device device, std::int64_t count, Use use);
    float* data() const { return data_; }
    void fetch();

private:
    Memory& memory_;
    float *place_, *data_ = nullptr;
    std::int64_t count_;
};

/// Starts an entry of the library, for work that follows on the default stream; throws what its outcome means. A fault
/// of the device while it runs is thrown by the next wait.
template <class Entry, class Task>
void start_entry(Entry entry, const Task& task, const std::atomic<bool>* cancel, const char* where) {
    const HsCall call = call_of(cancel);
    HsOutcome outcome{};
    entry(&task, &call, &outcome);
    expect_done(outcome, where);
}

/// Runs an entry and waits for its end.
template <class Entry, class Task>
void run_entry(const HsPlugin& library, Entry entry, const Task& task, const std::atomic<bool>* cancel,
               const char* where) {
    start_entry(entry, task, cancel, where);
    HsOutcome outcome{};
    library.wait(nullptr, &outcome);
    expect_done(outcome, where);
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) throw Cancelled();
}

}  // namespace headscope::kernels::gpu
