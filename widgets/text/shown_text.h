// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/store/analysis/analysis_header.h"

namespace headscope::widgets {

/// A tokenised text as it is read: the text's own characters where tokens have places in it (what a tokenizer leaves
/// out, such as BERT's spaces, stands between them), pieces where they have none. Line feeds show as "↵" and break the
/// line, tabs as "⇥"; control characters and marks of the writing direction as "‹U+202E›", bytes that are no
/// character as "‹x9C›". Values only: any thread.
struct ShownText {
    struct Token {
        qsizetype begin = 0, end = 0;  ///< in `text`, UTF-16
        int part = 0, parts = 1;       ///< of a character that several tokens make: all of them have the same place
        bool special = false;          ///< inserted: it stands for nothing in the text
    };
    QString text;
    std::vector<Token> tokens;  ///< ascending; spaces between them belong to none

    /// The token at a place of `text`; of several that make a character the first; -1: none.
    std::int64_t token_at(qsizetype place) const;
    /// The first token that ends behind `place`; size() when none does.
    std::size_t first_after(qsizetype place) const;
};

std::int64_t bytes_of(const ShownText& text);

ShownText show_text(const store::SequenceTokens& tokens);

/// Appends bytes as such a text shows them.
void append_shown(QString& text, std::string_view bytes);

/// A symbol that stands for white space or for what cannot be shown: drawn quietly.
bool is_quiet(QChar character);

}  // namespace headscope::widgets
