// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope {

/// Finalizer of SplitMix64 (Steele, Lea and Flood 2014; variant 13 of Stafford): a bijection in which every bit of the
/// result depends on every bit of the number.
constexpr std::uint64_t splitmix64(std::uint64_t number) {
    number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
    number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
    return number ^ (number >> 31U);
}

}  // namespace headscope
