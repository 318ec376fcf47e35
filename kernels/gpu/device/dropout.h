// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Dropout on attention weights (kernels/summary/attention_dropout.h): the same pairs as on the processor.

#include "kernels/gpu/device/tile.h"
#include "kernels/summary/attention_dropout.h"

namespace headscope::gpu {

/// Numbers of query i's pairs with keys column(n): 0 where the pair is dropped, else times 1 / (1 - p). The rule has
/// dropout. A dropped NaN is 0, too.
template <int kCount, class Column>
HS_DEVICE void drop_row(const HsRule& rule, int head, int i, const Column& column, float (&x)[kCount]) {
    const std::uint64_t row = kernels::dropout_row(rule.dropout, head, i + rule.query_offset);
#pragma unroll
    for (int n = 0; n < kCount; ++n)
        x[n] = kernels::dropout_bits(row, column(n)) < rule.dropout_threshold ? 0.0f : x[n] * rule.dropout_factor;
}

}  // namespace headscope::gpu
