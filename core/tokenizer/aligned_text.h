// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text that remembers where each of its bytes came from, through every normaliser. The rules of alignment are the
// reference's (the `tokenizers` library): all bytes of a character share one span of the original, an inserted
// character takes the span of the one before it, and offsets of a token run from its first byte's span to its last's.
//
// A text may grow to `most_bytes` of the original: a normaliser of a foreign file may put a page in the place of each
// letter. Error(limit) beyond that.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tokenizer/span_table.h"

namespace headscope::tokenizer {

/// One character of a rewritten text, and how it came about.
struct Change {
    char32_t point = 0;
    /// 0: stands for the next character of the old text; -n: so, and the n characters after that one vanish;
    /// 1: inserted.
    std::int32_t kind = 0;
};

/// Bytes that a text of `original` bytes may become.
std::size_t most_bytes(std::size_t original);

class AlignedText {
public:
    AlignedText() = default;
    /// Valid UTF-8 that begins at byte `origin` of the original text.
    AlignedText(std::string_view text, std::uint32_t origin)
        : text_(text), origin_(origin), most_(most_bytes(text.size())) {}

    const std::string& text() const noexcept { return text_; }
    std::uint32_t origin() const noexcept { return origin_; }
    std::size_t size() const noexcept { return text_.size(); }
    /// True while the characters lie where the original's do.
    bool in_step() const noexcept { return spans_.empty(); }
    /// The most bytes that it may grow to; other than most_bytes() of what it was made of.
    void allow(std::size_t most) noexcept { most_ = most; }

    /// The span of the character that byte `at` belongs to. Many in order: SpanReader.
    Span span(std::size_t at) const;
    /// Source of bytes [begin, end), begin < end.
    Span span(std::size_t begin, std::size_t end) const { return {span(begin).begin, span(end - 1).end}; }

    /// Bytes [begin, end) as a text of their own.
    AlignedText slice(std::size_t begin, std::size_t end) const;
    /// Replaces the text by `changes`, of which the first `removed` characters of the old text are no part.
    void transform(const std::vector<Change>& changes, std::size_t removed = 0);
    /// The same characters in other spelling: `text` has its characters at the same bytes as the old one.
    void overwrite(std::string text) { text_ = std::move(text); }
    /// Adds `other` at the end. Texts in step with the original that follow each other in it stay without a table.
    void append(AlignedText other);

private:
    friend class AlignedBuilder;
    friend class SpanReader;
    friend class Transformation;
    void make_table();
    void check_size(std::size_t size) const;

    std::string text_;
    SpanTable spans_;  ///< empty while in step
    std::uint32_t origin_ = 0;
    std::size_t most_ = most_bytes(0);
};

/// Spans of a text's bytes, quickest in ascending order. The text must outlive it and stay as it is.
class SpanReader {
public:
    explicit SpanReader(const AlignedText& text) : text_(&text), reader_(text.spans_) {}
    Span at(std::size_t byte) { return text_->in_step() ? text_->span(byte) : reader_.at(byte); }
    /// Source of bytes [begin, end), begin < end.
    Span of(std::size_t begin, std::size_t end) {
        const std::uint32_t first = at(begin).begin;
        return {first, at(end - 1).end};
    }

private:
    const AlignedText* text_;
    SpanTable::Reader reader_;
};

/// Rewrites a text character by character, from left to right. The old one stays until finish().
class Transformation {
public:
    explicit Transformation(AlignedText& text);
    /// The next characters of the old text vanish without a trace; before the first change.
    void remove(std::size_t characters) { skip(characters); }
    void add(Change change) {
        if (has_last_) write(last_);
        last_ = change;
        has_last_ = true;
    }
    bool empty() const noexcept { return !has_last_; }
    /// The change that came last, which may still be changed. Not when empty.
    Change& last() noexcept { return last_; }
    /// Puts the result in the place of the text.
    void finish();

private:
    void skip(std::size_t characters);
    void write(const Change& change);

    AlignedText& old_;
    SpanReader spans_;
    AlignedText result_;
    std::size_t at_ = 0;  ///< in the old text
    std::size_t written_ = 0;
    Change last_;
    bool has_last_ = false;
};

/// Writes a text piece by piece out of another one; for edits that are simpler than `Transformation`.
class AlignedBuilder {
public:
    /// `more`: bytes that the result will have beyond those of the source, as far as is known.
    explicit AlignedBuilder(const AlignedText& source, std::size_t more = 0);
    /// Bytes [begin, end) of the source; quickest in ascending order.
    void copy(std::size_t begin, std::size_t end);
    /// New text with a given place in the original.
    void put(std::string_view text, Span span);
    std::size_t size() const noexcept { return result_.text_.size(); }
    AlignedText finish() { return std::move(result_); }

private:
    const AlignedText& source_;
    SpanReader spans_;
    AlignedText result_;
};

}  // namespace headscope::tokenizer
