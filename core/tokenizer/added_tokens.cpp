// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

bool ends_with_word(std::string_view text) {
    return !text.empty() && is_word(decode_utf8(text, previous_utf8(text, text.size())).point);
}

bool starts_with_word(std::string_view text) {
    return !text.empty() && is_word(decode_utf8(text, 0).point);
}

// Bytes that the added tokens of a text may hold together. Tokens overlap where one that takes white space along is
// followed by others that are white space: n of them could hold n * n bytes.
std::uint64_t most_covered(std::uint64_t text) {
    return 2 * text + (1 << 20);
}

// Looking for them takes some eighty bytes a byte; the largest lists of 2026 have a megabyte.
constexpr std::uint64_t most_token_bytes = std::uint64_t{4} << 20U;

AddedToken read_token(const JsonView& entry) {
    AddedToken token;
    entry.at("id").integer({0, std::numeric_limits<std::int32_t>::max() - 1});
    token.content = entry.at("content").string();
    token.normalized = token.content;
    token.is_normalized = entry.at("normalized").boolean();
    token.single_word = entry.at("single_word").boolean();
    token.strip_left = entry.at("lstrip").boolean();
    token.strip_right = entry.at("rstrip").boolean();
    token.special = entry.at("special").boolean();
    return token;
}

}  // namespace

AddedTokens::AddedTokens(const JsonView& list, const Vocabulary& vocabulary, const Normalizer* normalizer)
    : where_(list.where()) {
    list.array();
    std::uint64_t bytes = 0;  // of all, as they are looked for
    auto next = static_cast<std::int64_t>(vocabulary.count());
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i % 1024 == 0) check_cancellation();
        AddedToken token = read_token(list.at(i));
        if (token.content.empty()) continue;
        if (const auto known = id_of(token.content)) {
            token.id = *known;
        } else if (const std::int32_t id = vocabulary.id(token.content); id >= 0) {
            token.id = id;
        } else {
            token.id = static_cast<std::int32_t>(next++);
        }
        if (token.is_normalized && normalizer != nullptr) {
            AlignedText text(token.content, 0);
            normalizer->apply(text);
            token.normalized = text.text();
        }
        bytes += token.normalized.size();
        if (bytes > most_token_bytes) {
            throw Error(ErrorCode::limit, list.at(i).where(),
                        "expected added tokens of together at most " + size_text(most_token_bytes) + " once normalised",
                        "found more");
        }
        ids_[token.content] = token.id;
        if (token.special) special_.insert(token.content);
        highest_id_ = std::max<std::int64_t>(highest_id_, token.id);
        tokens_[token.id] = std::move(token);
    }
    std::vector<const AddedToken*> ordered;
    for (const auto& [id, token] : tokens_) ordered.push_back(&token);
    std::sort(ordered.begin(), ordered.end(), [](const AddedToken* a, const AddedToken* b) { return a->id < b->id; });
    for (const AddedToken* token : ordered) {
        if (token->normalized.empty()) continue;
        (token->is_normalized ? normalized_ : raw_).add(token->normalized, token->id);
    }
    raw_.finish();
    normalized_.finish();
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? nullptr : &found->second;
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view content) const {
    const auto found = ids_.find(std::string(content));
    return found == ids_.end() ? std::nullopt : std::optional<std::int32_t>(found->second);
}

void AddedTokens::each(std::string_view text, const TokenSet& set, const TakeStretch& take) const {
    const auto size = static_cast<std::uint32_t>(text.size());
    std::uint32_t last = 0;
    std::uint32_t space_begin = 1;  // white space after a token, walked once
    std::uint32_t space_end = 0;
    std::uint64_t covered = 0;
    set.each(text, [&](const TokenSet::Found& found) {
        const AddedToken& token = tokens_.at(found.value);
        std::uint32_t begin = found.begin;
        std::uint32_t end = found.end;
        if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) return;
        while (token.strip_left && begin > last) {
            const auto before = static_cast<std::uint32_t>(previous_utf8(text, begin));
            if (!is_space(decode_utf8(text, before).point)) break;
            begin = before;
        }
        if (token.strip_left) begin = std::max(begin, last);
        if (token.strip_right) {
            // Within white space whose end is known, for a token that is white space itself.
            if (end < space_begin || end > space_end) {
                space_begin = space_end = end;
                while (space_end < size) {
                    const Decoded c = decode_utf8(text, space_end);
                    if (!is_space(c.point)) break;
                    space_end += c.length;
                }
            }
            end = space_end;
        }
        if (begin >= end) return;  // the one before took all of it; the library fails here
        if (last < begin) take({last, begin, -1});
        covered += end - begin;
        if (covered > most_covered(size)) {
            throw Error(ErrorCode::limit, where_,
                        "expected added tokens that do not all take the same white space along",
                        "found that those up to byte " + std::to_string(end) + " hold " + size_text(covered));
        }
        take({begin, end, found.value});
        last = end;
    });
    if (last < size) take({last, size, -1});
}

}  // namespace headscope::tokenizer
