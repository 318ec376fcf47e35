// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tokens as people see them: chips in a text panel, labels of rows and columns, tool tips.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::workspace {

/// One token. Tokens that share characters (the bytes of an emoji, the letters of a ligature) are a group: all of them
/// have its text, and each its place in it.
struct TokenChip {
    std::int64_t token = 0;  ///< position in the sequence
    std::int32_t id = 0;
    std::string label;         ///< of the group: figures::visible_token(), elided
    std::int64_t first = 0;    ///< the group's first token
    std::int32_t part = 1;     ///< 1: the first one of the group
    std::int32_t parts = 1;    ///< tokens in the group
    bool special = false;      ///< stands for no text: inserted, or of the special ids
    bool white_space = false;  ///< nothing but white space
    bool ends_line = false;    ///< has a line feed: what follows may begin a new line

    /// "the", or "🙂 2/3" for one of several tokens.
    std::string numbered() const;
};

/// Makes chips of a sequence when they are asked for. Refers to the sequence, which must live; its lists may have
/// different lengths (files from elsewhere): what is missing is shown as its id. Immutable: any thread.
class TokenDisplay {
public:
    explicit TokenDisplay(const store::SequenceTokens& sequence, std::set<std::int32_t> special_ids = {});

    std::int64_t size() const;
    /// Tokens [first, first + count), as far as there are any; time grows with count and the groups at its ends.
    std::vector<TokenChip> chips(std::int64_t first, std::int64_t count, std::size_t limit = 24) const;
    TokenChip chip(std::int64_t token, std::size_t limit = 24) const;
    /// First and one past last token of the group of a token. Groups longer than 256 tokens are cut.
    struct Group {
        std::int64_t begin = 0, end = 0;
    };
    Group group(std::int64_t token) const;

private:
    bool special(std::int64_t token) const;
    bool joined(std::int64_t token) const;
    Group group_from(std::int64_t begin) const;
    bool has_text(std::int64_t token) const;
    std::string_view piece(std::int64_t token) const;
    std::string text_of(Group group) const;

    const store::SequenceTokens& sequence_;
    std::set<std::int32_t> special_ids_;
};

}  // namespace headscope::workspace
