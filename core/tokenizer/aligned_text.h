// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text that remembers where each of its bytes came from, through every normaliser. The rules of alignment are the
// reference's (the `tokenizers` library): all bytes of a character share one span of the original, an inserted
// character takes the span of the one before it, and offsets of a token run from its first byte's span to its last's.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope::tokenizer {

/// Bytes [begin, end) of the original text.
struct Span {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// One character of a rewritten text, and how it came about.
struct Change {
    char32_t point = 0;
    /// 0: stands for the next character of the old text; -n: so, and the n characters after that one vanish;
    /// 1: inserted.
    std::int32_t kind = 0;
};

class AlignedText {
public:
    AlignedText() = default;
    /// Valid UTF-8 that begins at byte `origin` of the original text.
    AlignedText(std::string_view text, std::uint32_t origin) : text_(text), origin_(origin) {}

    const std::string& text() const noexcept { return text_; }
    std::uint32_t origin() const noexcept { return origin_; }
    std::size_t size() const noexcept { return text_.size(); }

    /// The span of the character that byte `at` belongs to.
    Span span(std::size_t at) const;
    /// Where bytes [begin, end), begin < end, come from.
    Span span(std::size_t begin, std::size_t end) const { return {span(begin).begin, span(end - 1).end}; }

    /// Bytes [begin, end) as a text of their own.
    AlignedText slice(std::size_t begin, std::size_t end) const;
    /// Replaces the text by `changes`, of which the first `removed` characters of the old text are no part.
    void transform(const std::vector<Change>& changes, std::size_t removed = 0);
    /// The same characters in other spelling: `text` has its characters at the same bytes as the old one.
    void overwrite(std::string text) { text_ = std::move(text); }
    /// Adds `other` at the end. Texts in step with the original that follow each other in it stay without a table.
    void append(const AlignedText& other);

private:
    friend class AlignedBuilder;
    void make_table();

    std::string text_;
    std::vector<Span> spans_;  ///< one a byte; empty while the characters lie where the original's do
    std::uint32_t origin_ = 0;
};

/// Writes a text piece by piece out of another one; for edits that are simpler than `transform`.
class AlignedBuilder {
public:
    /// `more`: bytes that the result will have beyond those of the source, as far as is known.
    explicit AlignedBuilder(const AlignedText& source, std::size_t more = 0);
    /// Bytes [begin, end) of the source.
    void copy(std::size_t begin, std::size_t end);
    /// New text with a given place in the original.
    void put(std::string_view text, Span span);
    std::size_t size() const noexcept { return result_.text_.size(); }
    AlignedText finish() { return std::move(result_); }

private:
    const AlignedText& source_;
    AlignedText result_;
};

}  // namespace headscope::tokenizer
