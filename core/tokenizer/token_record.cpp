// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/token_record.h"

namespace headscope::tokenizer {

namespace {

constexpr std::size_t block_bytes = 1 << 20;

// A token is twice its length, plus one where it is odd; its id; and of an odd one two bits of flags with what its
// begin differs by from the last one's end, its sign first, and a respelled one's spelling.
constexpr std::uint64_t flag_special = 1;
constexpr std::uint64_t flag_respelled = 2;

}  // namespace

void TokenRecord::add(const FoundToken& token) {
    if (blocks_.empty() || blocks_.back().size() >= block_bytes) {
        blocks_.emplace_back();
        blocks_.back().reserve(block_bytes + 64);
    }
    std::string& block = blocks_.back();
    const std::int64_t gap = static_cast<std::int64_t>(token.begin) - last_;
    const bool odd = gap != 0 || token.special || token.respelled || token.end < token.begin;
    const std::uint32_t length = token.end - token.begin;
    put_varint(block, 2 * static_cast<std::uint64_t>(length) + (odd ? 1 : 0));
    put_varint(block, static_cast<std::uint32_t>(token.id));
    if (odd) {
        const auto size = static_cast<std::uint64_t>(gap < 0 ? -gap : gap);
        const std::uint64_t flags = (token.special ? flag_special : 0) | (token.respelled ? flag_respelled : 0);
        put_varint(block, size << 3 | (gap < 0 ? 4u : 0u) | flags);
        if (token.respelled) {
            put_varint(block, token.respelled->size());
            block.append(*token.respelled);
        }
    }
    last_ = token.end;
    ++size_;
}

FoundToken TokenRecord::read(const char*& at, std::uint32_t& last) {
    FoundToken token;
    const std::uint64_t code = take_varint(at);
    token.id = static_cast<std::int32_t>(static_cast<std::uint32_t>(take_varint(at)));
    token.begin = last;
    if (code % 2 != 0) {
        const std::uint64_t odd = take_varint(at);
        const auto size = static_cast<std::uint32_t>(odd >> 3);
        token.begin = (odd & 4) != 0 ? last - size : last + size;
        token.special = (odd & flag_special) != 0;
        if ((odd & flag_respelled) != 0) {
            const std::uint64_t length = take_varint(at);
            token.respelled = std::string_view(at, length);
            at += length;
        }
    }
    token.end = token.begin + static_cast<std::uint32_t>(code / 2);
    last = token.end;
    return token;
}

}  // namespace headscope::tokenizer
