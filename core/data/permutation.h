// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/data/random.h"

namespace headscope::data {

/// Item `index` of the permutation of [0, count) that `key` names, in constant memory and about constant time: a
/// Feistel network of six rounds on the least even number of bits that hold `count`, walked along until it is inside
/// (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). 0 <= index < count.
constexpr std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t key) {
    constexpr unsigned rounds = 6;
    unsigned half = 1;
    while (half < 31 && (std::uint64_t{1} << (2 * half)) < static_cast<std::uint64_t>(count)) ++half;
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    auto value = static_cast<std::uint64_t>(index);
    do {
        std::uint64_t left = value >> half;
        std::uint64_t right = value & mask;
        for (unsigned round = 0; round < rounds; ++round) {
            const std::uint64_t mixed = left ^ (splitmix64(key_of(key, round) + right) & mask);
            left = right;
            right = mixed;
        }
        value = left << half | right;
    } while (value >= static_cast<std::uint64_t>(count));
    return static_cast<std::int64_t>(value);
}

}  // namespace headscope::data
