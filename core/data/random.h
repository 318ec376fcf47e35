// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Random numbers that are a pure function of keys, the same on every machine: SplitMix64 (Steele, Lea and Flood 2014),
// begun at a hash of the keys. Standard distributions are left alone: they differ between libraries.

#include <cstdint>
#include <vector>

#include "core/base/splitmix64.h"

namespace headscope::data {

using headscope::splitmix64;

constexpr std::uint64_t key_of(std::uint64_t seed, std::uint64_t part) {
    return splitmix64(splitmix64(seed + 0x9E3779B97F4A7C15U) ^ (part * 0xD1342543DE82EF95U + 0x2545F4914F6CDD1DU));
}

class Random {
public:
    Random(std::uint64_t seed, std::uint64_t part) : state_(key_of(seed, part)) {}

    std::uint64_t next() { return splitmix64(state_ += 0x9E3779B97F4A7C15U); }

    /// A whole number in [0, count), count > 0; every one equally likely (Lemire 2019).
    std::uint64_t below(std::uint64_t count) {
        __extension__ using Wide = unsigned __int128;
        Wide product = static_cast<Wide>(next()) * count;
        if (auto low = static_cast<std::uint64_t>(product); low < count) {
            for (const std::uint64_t threshold = (0 - count) % count; low < threshold;) {
                product = static_cast<Wide>(next()) * count;
                low = static_cast<std::uint64_t>(product);
            }
        }
        return static_cast<std::uint64_t>(product >> 64U);
    }
    std::int64_t below(std::int64_t count) {
        return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(count)));
    }

    /// In [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

private:
    std::uint64_t state_;
};

/// `count` different numbers of [0, range), in random order; count <= range.
std::vector<std::int64_t> draw_different(Random& random, std::int64_t range, std::int64_t count);

}  // namespace headscope::data
