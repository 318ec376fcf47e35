// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pieces.h"

#include <utility>

#include "core/base/progress.h"
#include "core/tokenizer/byte_level.h"
#include "core/tokenizer/varint.h"

namespace headscope::tokenizer {

namespace {
// Pieces between two looks at the cancellation flag: well under a millisecond's worth.
constexpr std::size_t pieces_per_check = 4096;
}  // namespace

void PieceList::add(const Piece& piece) {
    const std::uint32_t gap = piece.begin - last_;
    const std::uint32_t length = piece.end - piece.begin;
    last_ = piece.end;
    ++count_;
    if (gap <= 1 && length <= longest_usual && piece.id == no_id && !piece.is_first) {
        bytes_.push_back(static_cast<char>(static_cast<unsigned char>(2 * length + gap)));
        return;
    }
    bytes_.push_back(static_cast<char>(rare));
    put_varint(bytes_, 2 * static_cast<std::uint64_t>(gap) + (piece.is_first ? 1 : 0));
    put_varint(bytes_, length);
    put_varint(bytes_, static_cast<std::uint64_t>(static_cast<std::int64_t>(piece.id) + 1));
}

void PieceList::read(const char*& at, Piece& piece) {
    const auto code = static_cast<unsigned char>(*at++);
    if (code != rare) {
        const std::uint32_t begin = piece.end + code % 2;
        piece = {begin, begin + code / 2, no_id, false};
        return;
    }
    const std::uint64_t gap = take_varint(at);
    const std::uint32_t begin = piece.end + static_cast<std::uint32_t>(gap / 2);
    const auto length = static_cast<std::uint32_t>(take_varint(at));
    const auto id = static_cast<std::int32_t>(static_cast<std::int64_t>(take_varint(at)) - 1);
    piece = {begin, begin + length, id, gap % 2 != 0};
}

void Pieces::check_cancellation() const {
    if (cancellation_ != nullptr) cancellation_->check();
}

void Pieces::add(AlignedText text, std::int32_t id) {
    if (text.size() == 0) return;
    const auto begin = static_cast<std::uint32_t>(text_.size());
    const auto end = static_cast<std::uint32_t>(begin + text.size());
    const bool is_first = text.span(0).begin == 0;
    text_.append(std::move(text));
    list_.add({begin, end, id, is_first});
}

void Pieces::Parts::add(std::uint32_t begin, std::uint32_t end) {
    if (begin == end) return;
    const std::uint32_t place = piece_.begin + begin;
    const bool is_first = begin == 0 ? piece_.is_first : spans_.at(place).begin == 0;
    list_.add({place, piece_.begin + end, no_id, is_first});
}

void Pieces::split(const std::function<void(std::string_view piece, Parts& parts)>& cut) {
    if (stands_for_bytes_) spell_bytes();
    Parts parts(text_);
    std::size_t count = 0;
    list_.each([&](const Piece& piece) {
        if (count++ % pieces_per_check == 0) check_cancellation();
        if (piece.id != no_id) {
            parts.list_.add(piece);
            return;
        }
        parts.piece_ = piece;
        cut(view(piece), parts);
    });
    list_ = std::move(parts.list_);
}

void Pieces::split(const Matcher& matcher, SplitBehavior behavior, bool invert) {
    SearchWatch watch(text_.size());
    split([&](std::string_view piece, Parts& parts) {
        PartMaker maker(static_cast<std::uint32_t>(piece.size()), behavior, invert,
                        [&parts](Match part) { parts.add(part.begin, part.end); });
        matcher.each(piece, watch, [&maker](Match match) { maker.match(match); });
        maker.finish();
    });
}

void Pieces::rewrite(const std::function<void(const Piece& piece, std::string_view text, SpanReader& spans,
                                              AlignedBuilder& result)>& write,
                     std::size_t more) {
    if (stands_for_bytes_) spell_bytes();
    AlignedBuilder builder(text_, more);
    SpanReader spans(text_);
    PieceList list;
    std::size_t count = 0;
    list_.each([&](const Piece& piece) {
        if (count++ % pieces_per_check == 0) check_cancellation();
        const auto begin = static_cast<std::uint32_t>(builder.size());
        if (piece.id != no_id) {
            builder.copy(piece.begin, piece.end);
        } else {
            write(piece, view(piece), spans, builder);
        }
        list.add({begin, static_cast<std::uint32_t>(builder.size()), piece.id, piece.is_first});
    });
    text_ = builder.finish();
    list_ = std::move(list);
}

void Pieces::stand_for_bytes() {
    if (stands_for_bytes_) spell_bytes();
    stands_for_bytes_ = true;
}

void Pieces::spell_bytes() {
    stands_for_bytes_ = false;
    rewrite([](const Piece& piece, std::string_view text, SpanReader& spans, AlignedBuilder& result) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            result.put(byte_spelling(static_cast<unsigned char>(text[i])), spans.at(piece.begin + i));
        }
    });
}

}  // namespace headscope::tokenizer
