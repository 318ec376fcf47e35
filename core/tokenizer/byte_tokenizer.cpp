// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/byte_tokenizer.h"

#include "core/base/progress.h"
#include "core/base/text/text.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

void add_bytes(TokenSink& sink, std::string_view text, std::uint8_t region, const Cancellation* cancellation) {
    constexpr std::size_t bytes_per_check = 1 << 20;
    for (std::uint32_t i = 0; i < text.size(); ++i) {
        if (cancellation != nullptr && i % bytes_per_check == 0) cancellation->check();
        sink.add({static_cast<unsigned char>(text[i]), i, i + 1, false, std::nullopt, region - 1, region});
    }
}

}  // namespace

void ByteTokenizer::encode_into(TokenSink& sink, std::string_view text, bool, const Cancellation* cancellation) const {
    add_bytes(sink, text, 1, cancellation);
}

void ByteTokenizer::encode_pair_into(TokenSink& sink, std::string_view first, std::string_view second, bool,
                                     const Cancellation* cancellation) const {
    add_bytes(sink, first, 1, cancellation);
    add_bytes(sink, second, 2, cancellation);
}

std::vector<FramePart> ByteTokenizer::frame(bool pair) const {
    std::vector<FramePart> parts{{{}, 0, 0}};
    if (pair) parts.push_back({{}, 1, 1});
    return parts;
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> ids, bool) const {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += surface(id);
    return repaired_utf8(bytes);
}

std::string ByteTokenizer::piece(std::int32_t id) const {
    return id < 0 || id > 255 ? std::string() : std::string(byte_spelling(static_cast<unsigned char>(id)));
}

std::string ByteTokenizer::surface(std::int32_t id) const {
    return id < 0 || id > 255 ? std::string() : std::string(1, static_cast<char>(static_cast<unsigned char>(id)));
}

std::optional<std::int32_t> ByteTokenizer::id_of(std::string_view piece) const {
    if (piece.empty() || find_invalid_utf8(piece) != std::string_view::npos) return std::nullopt;
    const auto bytes = spelled_bytes(piece);
    if (!bytes || bytes->size() != 1) return std::nullopt;
    return static_cast<unsigned char>(bytes->front());
}

}  // namespace headscope::tokenizer
