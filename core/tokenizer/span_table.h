// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Source of each byte of a rewritten text, in little more than a byte each: mostly the character after the last one's,
// which has a short code.

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::tokenizer {

/// Bytes [begin, end) of the original text.
struct Span {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    friend bool operator==(const Span&, const Span&) = default;
};

class SpanTable {
public:
    bool empty() const noexcept { return codes_.empty(); }
    std::size_t size() const noexcept { return codes_.size(); }
    void reserve(std::size_t bytes);

    /// The next `bytes` bytes of the text come from `span`.
    void add(std::size_t bytes, Span span) {
        if (bytes == 0) return;
        codes_.push_back(static_cast<char>(code_of(span)));
        if (bytes > 1) codes_.append(bytes - 1, '\0');
        last_ = span;
        while (marks_.size() * mark_distance < codes_.size()) marks_.push_back(span);
    }

    /// Finds spans by byte of the text: in ascending order at a step a byte, in any other from the nearest mark on.
    class Reader {
    public:
        explicit Reader(const SpanTable& table) : table_(&table) {}
        Span at(std::size_t place) {
            if (place < place_ || place - place_ > mark_distance || place_ == nowhere) go_to_mark(place);
            while (place_ < place) step();
            return span_;
        }

    private:
        static constexpr std::size_t nowhere = ~std::size_t{0};
        void go_to_mark(std::size_t place);
        void step();

        const SpanTable* table_;
        std::size_t place_ = nowhere;
        Span span_;
    };

private:
    // A code of 0: the span of the byte before. Else 1 + 4 gap + length - 1 of a span of at most 4 bytes that begins
    // `gap` bytes after the last one's end; what fits neither is `odd`.
    static constexpr std::uint32_t most_gap = 62;
    static constexpr unsigned char odd = 255;
    static constexpr std::size_t mark_distance = 128;
    struct Odd {
        std::uint32_t place = 0;
        Span span;
    };

    unsigned char code_of(Span span) {
        if (span == last_) return 0;
        const std::uint32_t gap = span.begin - last_.end;
        const std::uint32_t length = span.end - span.begin;
        if (gap <= most_gap && length - 1 < 4) return static_cast<unsigned char>(4 * gap + length);
        odd_.push_back({static_cast<std::uint32_t>(codes_.size()), span});
        return odd;
    }

    std::string codes_;
    std::vector<Span> marks_;  ///< of every mark_distance-th byte
    std::vector<Odd> odd_;     ///< by place
    Span last_;
};

}  // namespace headscope::tokenizer
