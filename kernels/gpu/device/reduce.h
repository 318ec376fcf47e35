// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Sums in a fixed order.

#include "kernels/gpu/device/tile.h"

namespace headscope::gpu {

HS_DEVICE float infinity() {
    return float_of(0x7F800000U);
}
HS_DEVICE float nan_value() {
    return float_of(0x7FC00000U);
}

/// The sum over kLanes lanes, in all of them.
template <int kLanes = 16>
HS_DEVICE float sum_of_lanes(const Context& c, float x) {
#pragma unroll
    for (int n = 1; n < kLanes; n *= 2) x += c.shuffle_xor(x, n);
    return x;
}

/// The sum over a block's threads, in all of them. memory: [kThreads]; begins and ends with a barrier.
template <int kThreads>
HS_DEVICE double sum_of_block(const Context& c, Shared<double> memory, double x) {
    const int t = c.thread();
    c.sync();
    memory[t] = x;
    for (int n = kThreads / 2; n > 0; n /= 2) {
        c.sync();
        if (t < n) memory[t] = memory[t] + memory[t + n];
    }
    c.sync();
    const double sum = memory[0];
    c.sync();
    return sum;
}

template <int kThreads>
HS_DEVICE double maximum_of_block(const Context& c, Shared<double> memory, double x) {
    const int t = c.thread();
    c.sync();
    memory[t] = x;
    for (int n = kThreads / 2; n > 0; n /= 2) {
        c.sync();
        if (t < n) {
            const double a = memory[t], b = memory[t + n];
            memory[t] = a > b ? a : b;
        }
    }
    c.sync();
    const double maximum = memory[0];
    c.sync();
    return maximum;
}

}  // namespace headscope::gpu
