// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"

namespace headscope::store {

/// Queries and keys rounded to float16 with row constants that belong to the rounded ones, so that rows of a map that
/// is recomputed from them still sum to 1.
struct RoundedMap {
    std::vector<std::uint16_t> query, key;  ///< [H, Lq, dk], [G, Lk, dk], binary16
    std::vector<float> row_constant;        ///< [H, Lq]
};

/// `rule` is that of one batch row. Throws Error (limit) when a value lies beyond float16's 65504.
RoundedMap round_map(std::span<const float> query, std::span<const float> key, const kernels::ScoreRule& rule,
                     std::int64_t heads, std::int64_t key_value_heads, std::int64_t queries, std::int64_t keys,
                     std::int64_t key_size);

}  // namespace headscope::store
