// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Hashes for look-up tables. They differ from run to run, so that no file can be made whose pieces all fall into one
// slot.

#include <cstdint>
#include <string_view>

namespace headscope::tokenizer {

/// Drawn when the program starts.
extern const std::uint64_t hash_seed;

/// Product of two numbers, folded: each bit of the result hangs on all bits.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_number(std::uint64_t number) {
    return mix(number ^ hash_seed, 0x9E3779B97F4A7C15ull);
}

/// For few and many bytes alike.
std::uint64_t hash_bytes(std::string_view bytes);

}  // namespace headscope::tokenizer
