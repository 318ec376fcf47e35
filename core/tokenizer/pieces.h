// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A text on its way through the pipeline: the normalised text, cut into pieces. A piece is plain text, still to be
// split and tokenised, or an added token that was found in the text.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/tokenizer/aligned_text.h"
#include "core/tokenizer/matcher.h"

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

constexpr std::int32_t no_id = -1;

struct Piece {
    std::uint32_t begin = 0;  ///< bytes of Pieces::text()
    std::uint32_t end = 0;
    std::uint32_t origin = 0;  ///< byte of the original text where the piece began when it was cut
    std::int32_t id = no_id;   ///< of the added token that it is
};

class Pieces {
public:
    explicit Pieces(const Cancellation* cancellation = nullptr) : cancellation_(cancellation) {}

    /// Adds a piece of normalised text at the end; an empty one is dropped.
    void add(const AlignedText& text, std::int32_t id = no_id);

    const AlignedText& text() const noexcept { return text_; }
    const std::vector<Piece>& list() const noexcept { return list_; }
    std::string_view view(const Piece& piece) const {
        return std::string_view(text_.text()).substr(piece.begin, piece.end - piece.begin);
    }

    /// Cuts every plain piece into the parts that `cut` finds (relative to the piece; empty ones are dropped).
    void split(const std::function<void(std::string_view piece, std::vector<Match>& parts)>& cut);
    /// Cuts every plain piece by what `matcher` finds.
    void split(const Matcher& matcher, SplitBehavior behavior, bool invert = false);
    /// Writes every plain piece anew: `write` gets the piece, its text, the whole old text and where to write. `more`:
    /// bytes that the text will grow by, as far as is known.
    void rewrite(const std::function<void(const Piece& piece, std::string_view text, const AlignedText& source,
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
    std::vector<Piece> list_;
    const Cancellation* cancellation_ = nullptr;
    bool stands_for_bytes_ = false;
};

}  // namespace headscope::tokenizer
