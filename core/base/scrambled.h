// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope {

/// Every bit of the result hangs on every bit of the number, and no two numbers share a result: the finaliser of
/// SplitMix64 (Steele, Lea and Flood 2014; variant 13 of Stafford).
constexpr std::uint64_t scrambled(std::uint64_t number) {
    number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
    number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
    return number ^ (number >> 31U);
}

}  // namespace headscope
