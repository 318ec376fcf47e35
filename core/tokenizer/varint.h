// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Whole numbers in as few bytes as they need, seven bits a byte, the lowest first. For lists that are written and read
// in order, of which a text of millions of pieces would fill gigabytes else.

#include <cstdint>
#include <string>

namespace headscope::tokenizer {

inline void put_varint(std::string& bytes, std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(static_cast<unsigned char>(value | 128)));
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(value)));
}

/// Reads what put_varint wrote at `at`, which moves on behind it.
inline std::uint64_t take_varint(const char*& at) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        value |= static_cast<std::uint64_t>(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

}  // namespace headscope::tokenizer
