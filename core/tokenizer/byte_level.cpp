// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/byte_level.h"

#include <array>

#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

struct Alphabet {
    std::array<char32_t, 256> characters{};
    std::array<std::string, 256> spellings;
    std::array<std::int16_t, 0x144> bytes{};

    Alphabet() {
        bytes.fill(-1);
        char32_t next = 0x100;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
            characters[byte] = printable ? static_cast<char32_t>(byte) : next++;
            spellings[byte] = to_utf8(characters[byte]);
            bytes[characters[byte]] = static_cast<std::int16_t>(byte);
        }
    }
};

const Alphabet& alphabet() {
    static const Alphabet instance;
    return instance;
}

}  // namespace

char32_t byte_character(unsigned char byte) {
    return alphabet().characters[byte];
}

std::string_view byte_spelling(unsigned char byte) {
    return alphabet().spellings[byte];
}

std::optional<unsigned char> spelled_byte(char32_t c) {
    const Alphabet& all = alphabet();
    if (c >= all.bytes.size() || all.bytes[c] < 0) return std::nullopt;
    return static_cast<unsigned char>(all.bytes[c]);
}

std::optional<std::string> spelled_bytes(std::string_view spelling) {
    std::string bytes;
    for (std::size_t at = 0; at < spelling.size();) {
        const Decoded c = decode_utf8(spelling, at);
        const std::optional<unsigned char> byte = spelled_byte(c.point);
        if (!byte) return std::nullopt;
        bytes.push_back(static_cast<char>(*byte));
        at += c.length;
    }
    return bytes;
}

}  // namespace headscope::tokenizer
