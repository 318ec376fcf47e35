// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// UTF-8 by hand, for text that find_invalid_utf8 (core/base/text/text.h) has passed. Byte positions, code points, no
// locale.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headscope::tokenizer {

inline bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Length in bytes of the character that begins with `lead`; `lead` must be a valid first byte.
inline std::size_t utf8_length(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

inline std::size_t utf8_length(char32_t c) {
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

struct Decoded {
    char32_t point = 0;
    std::uint32_t length = 1;  ///< bytes
};

/// The character at `at` of valid text.
inline Decoded decode_utf8(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
    const char32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    if (lead < 0xE0) return {((lead & 0x1F) << 6) | (byte(1) & 0x3F), 2};
    if (lead < 0xF0) return {((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3};
    return {((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F), 4};
}

/// Start of the character that ends at `end` (> 0).
inline std::size_t previous_utf8(std::string_view text, std::size_t end) {
    std::size_t at = end - 1;
    while (at > 0 && is_continuation(text[at])) --at;
    return at;
}

void append_utf8(std::string& text, char32_t c);
std::string to_utf8(char32_t c);

/// Position of `wanted` in `text` at or after `from`, or npos. Linear time for any `wanted`.
std::size_t find_text(std::string_view text, std::string_view wanted, std::size_t from);

/// Number of characters of valid text.
std::size_t count_utf8(std::string_view text);

/// Bytes as text: every maximal ill-formed part becomes one U+FFFD (Unicode 16, section 3.9, table 3-8).
std::string repaired_utf8(std::string_view bytes);

}  // namespace headscope::tokenizer
