// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text/text.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/decoders/decoder.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

std::optional<unsigned char> fallback_byte(std::string_view piece) {
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
    int value = 0;
    for (const char digit : piece.substr(3, 2)) {
        const int number = digit >= '0' && digit <= '9'   ? digit - '0'
                           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                                          : -1;
        if (number < 0) return std::nullopt;
        value = value * 16 + number;
    }
    return static_cast<unsigned char>(value);
}

namespace {

/// Characters back to the bytes they stand for, across tokens; a piece with other characters stays as it is.
class ByteLevel final : public Decoder {
public:
    void apply(std::vector<std::string>& pieces) const override {
        std::string bytes;
        for (const std::string& piece : pieces) {
            const auto spelled = spelled_bytes(piece);
            bytes += spelled ? *spelled : piece;
        }
        pieces.assign(1, repaired_utf8(bytes));
    }
};

/// "<0xE2>" "<0x82>" "<0xAC>" to one character. A run that is no UTF-8 becomes one U+FFFD a byte.
class ByteFallback final : public Decoder {
public:
    void apply(std::vector<std::string>& pieces) const override {
        std::vector<std::string> result;
        std::string bytes;
        const auto flush = [&] {
            if (bytes.empty()) return;
            if (find_invalid_utf8(bytes) == std::string::npos) {
                result.push_back(bytes);
            } else {
                result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
            }
            bytes.clear();
        };
        for (std::string& piece : pieces) {
            if (const auto byte = fallback_byte(piece)) {
                bytes.push_back(static_cast<char>(*byte));
            } else {
                flush();
                result.push_back(std::move(piece));
            }
        }
        flush();
        pieces = std::move(result);
    }
};

class Fuse final : public Decoder {
public:
    void apply(std::vector<std::string>& pieces) const override {
        std::string joined;
        for (const std::string& piece : pieces) joined += piece;
        pieces.assign(1, std::move(joined));
    }
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() {
    return std::make_unique<ByteLevel>();
}
std::unique_ptr<Decoder> make_byte_fallback_decoder() {
    return std::make_unique<ByteFallback>();
}
std::unique_ptr<Decoder> make_fuse() {
    return std::make_unique<Fuse>();
}

}  // namespace headscope::tokenizer
