// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// kernels/taylor_state.h for processors, checked before: one key head of one sequence with the heads that read it.

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/cpu/attention/backward.h"
#include "kernels/cpu/attention/sequence.h"
#include "kernels/taylor_state.h"

namespace headscope::kernels::cpu {

void taylor_forward_cpu(const TaylorInput& input, const MutableView& output, float* state);

inline constexpr std::int64_t kTaylorChunk = 96;  ///< tokens; a multiple of every target's rows and panels

/// A row of the state: the product of two numbers of (1, k), and what the same product of a query's counts for.
struct TaylorFeature {
    std::int32_t a = 0, b = 0;
    float factor = 0.0F;
};
/// Sorted by order; begin[n] is the first of order n, begin[3] their number.
struct TaylorFeatures {
    std::vector<TaylorFeature> list;
    std::int64_t begin[4] = {0, 0, 0, 0};
    bool diagonal = false, per_order = false;
};
TaylorFeatures features_of(Normaliser normaliser, std::int64_t key_size, double scale);

struct TaylorTask {
    const TaylorFeatures* features = nullptr;
    HeadMatrix query, key, value;                    ///< of one sequence
    std::int64_t head = 0, group = 1, key_head = 0;  ///< heads [head, head + group) read key_head
    std::int64_t length = 0, key_size = 0, value_size = 0;
    float scale = 1.0F;
    HeadTarget output;
    float* state = nullptr;  ///< of this head, [features, value_size + 1]; null: none before, none wanted
    const std::atomic<bool>* cancel = nullptr;
    float* scratch = nullptr;
};
std::int64_t taylor_scratch(const TaylorFeatures& features, std::int64_t key_size, std::int64_t value_size,
                            std::int64_t group);
void taylor_forward_task(const TaylorTask& task);

}  // namespace headscope::kernels::cpu
