// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// GPT-2's alphabet: a printable character for each of the 256 bytes. Bytes 21-7E, A1-AC and AE-FF are the characters
// of the same number, the others follow from U+0100 on (Radford et al. 2019, encoder.py).

#include <optional>
#include <string>
#include <string_view>

namespace headscope::tokenizer {

char32_t byte_character(unsigned char byte);
/// The character as UTF-8, one or two bytes.
std::string_view byte_spelling(unsigned char byte);
/// The byte that a character stands for.
std::optional<unsigned char> spelled_byte(char32_t c);
/// The bytes that `spelling` stands for; nothing if some character is not of the alphabet.
std::optional<std::string> spelled_bytes(std::string_view spelling);

}  // namespace headscope::tokenizer
