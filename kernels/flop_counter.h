// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Floating-point operations of the matrix products inside our kernels, counted where they run: so that a count changes
// when a kernel does. A multiply-add is two. What a tile computes beyond a mask or past a sequence's end is counted,
// for it is computed; softmax, norms and other work by element is not, as in the papers' tables.

#include <atomic>
#include <cstdint>

namespace headscope::kernels {

/// Counts from 0 while it lives, over all threads of the process; one at a time (the second throws Error).
class FlopCounter {
public:
    FlopCounter();
    ~FlopCounter();
    FlopCounter(const FlopCounter&) = delete;
    FlopCounter& operator=(const FlopCounter&) = delete;
    std::int64_t value() const;
    /// False while a GPU's library is the chosen backend: its kernels do not count.
    static bool is_complete();
};

namespace counting {
extern std::atomic<bool> on;
extern std::atomic<std::int64_t> flops;
}  // namespace counting

/// Adds the operations of one tile; a call per row would cost time. Does nothing unless counting is on.
inline void executed_flops(std::int64_t count) {
    if (counting::on.load(std::memory_order_relaxed)) counting::flops.fetch_add(count, std::memory_order_relaxed);
}

}  // namespace headscope::kernels
