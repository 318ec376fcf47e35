// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A text on its way through the pipeline: the normalised text, cut into pieces. A piece is plain text, still to be
// split and tokenised, or an added token that was found in the text.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/tokenizer/aligned_text.h"
#include "core/tokenizer/regex/matcher.h"

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

constexpr std::int32_t no_id = -1;

struct Piece {
    std::uint32_t begin = 0;  ///< bytes of Pieces::text()
    std::uint32_t end = 0;
    std::int32_t id = no_id;  ///< of the added token that it is
    bool is_first = false;    ///< it began where the original text begins when it was cut
};

/// Pieces in order, none overlapping, in a byte or two each: a text may fall into as many as it has bytes.
class PieceList {
public:
    void add(const Piece& piece);
    std::size_t size() const noexcept { return count_; }
    /// Calls take(piece) for each.
    template <class Take>
    void each(const Take& take) const {
        const char* at = bytes_.data();
        const char* const end = at + bytes_.size();
        Piece piece;
        while (at != end) {
            read(at, piece);
            take(static_cast<const Piece&>(piece));
        }
    }

private:
    // A byte for nearly all: the length, and whether a byte was left out before. Else `rare`, a byte of flags, then the
    // gap, the length and the id.
    static constexpr unsigned char rare = 255;
    static constexpr std::uint32_t longest_usual = 126;
    static void read(const char*& at, Piece& piece);

    std::string bytes_;
    std::size_t count_ = 0;
    std::uint32_t last_ = 0;  ///< where the last piece ends
};

class Pieces {
public:
    /// `original`: bytes of the text that they are made of.
    explicit Pieces(std::size_t original, const Cancellation* cancellation = nullptr) : cancellation_(cancellation) {
        text_.allow(most_bytes(original));
    }

    /// Adds a piece of normalised text at the end; an empty one is dropped.
    void add(AlignedText text, std::int32_t id = no_id);

    const AlignedText& text() const noexcept { return text_; }
    const PieceList& list() const noexcept { return list_; }
    std::string_view view(const Piece& piece) const {
        return std::string_view(text_.text()).substr(piece.begin, piece.end - piece.begin);
    }

    /// Takes the parts of one piece, in order, by their bytes of it. Empty ones are dropped.
    class Parts {
    public:
        void add(std::uint32_t begin, std::uint32_t end);

    private:
        friend class Pieces;
        explicit Parts(const AlignedText& text) : spans_(text) {}
        SpanReader spans_;
        PieceList list_;
        Piece piece_;
    };
    /// Cuts every plain piece into the parts that `cut` finds.
    void split(const std::function<void(std::string_view piece, Parts& parts)>& cut);
    /// Cuts every plain piece by what `matcher` finds.
    void split(const Matcher& matcher, SplitBehavior behavior, bool invert = false);
    /// Rewrites every plain piece: `write` gets the piece, its text, the spans of the whole old text and the target.
    /// `more`: expected growth of the text in bytes.
    void rewrite(const std::function<void(const Piece& piece, std::string_view text, SpanReader& spans,
                                          AlignedBuilder& result)>& write,
                 std::size_t more = 0);

    /// Byte-level pre-tokenisers replace each byte by a printable character (byte_level.h). That is put off: most
    /// models can work on the bytes themselves. A later component that needs the text gets the characters.
    void stand_for_bytes();
    bool stands_for_bytes() const noexcept { return stands_for_bytes_; }
    /// Does what stand_for_bytes put off.
    void spell_bytes();

    const Cancellation* cancellation() const noexcept { return cancellation_; }

private:
    void check_cancellation() const;

    AlignedText text_;
    PieceList list_;
    const Cancellation* cancellation_ = nullptr;
    bool stands_for_bytes_ = false;
};

}  // namespace headscope::tokenizer
