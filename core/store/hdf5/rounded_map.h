// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/score_rule.h"

namespace headscope::store {

/// Numbers as integers from -32767 to 32767 and what they are to be multiplied by: each is off by at most 1/65534 of
/// the largest magnitude. (Not float16, on which netCDF-C breaks its heap; what is small beside the largest loses more
/// here, what is large less, and nothing overflows.)
struct Rounded {
    std::vector<std::int16_t> values;
    float scale = 1;

    static constexpr float kMost = 32767;
    std::vector<float> back() const;
};

/// Queries and keys rounded, with row constants that belong to the rounded ones, so that rows of a map that is
/// recomputed from them still sum to 1.
struct RoundedMap {
    Rounded query, key;               ///< [H, Lq, dk], [G, Lk, dk]
    std::vector<float> row_constant;  ///< [H, Lq]
};

/// `rule` is that of one batch row. Throws Error (limit) when a value is not finite.
RoundedMap round_map(std::span<const float> query, std::span<const float> key, const kernels::ScoreRule& rule,
                     std::int64_t heads, std::int64_t key_value_heads, std::int64_t queries, std::int64_t keys,
                     std::int64_t key_size);

}  // namespace headscope::store
