// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/pieces.h"

#include <utility>

#include "core/base/progress.h"
#include "core/tokenizer/byte_level.h"

namespace headscope::tokenizer {

namespace {
// Pieces between two looks at the cancellation flag: well under a millisecond's worth.
constexpr std::size_t pieces_per_check = 4096;
}  // namespace

void Pieces::check_cancellation() const {
    if (cancellation_ != nullptr) cancellation_->check();
}

void Pieces::add(const AlignedText& text, std::int32_t id) {
    if (text.size() == 0) return;
    const auto begin = static_cast<std::uint32_t>(text_.size());
    text_.append(text);
    list_.push_back({begin, static_cast<std::uint32_t>(text_.size()), text.span(0).begin, id});
}

void Pieces::split(const std::function<void(std::string_view piece, std::vector<Match>& parts)>& cut) {
    if (stands_for_bytes_) spell_bytes();
    std::vector<Piece> result;
    result.reserve(list_.size());
    std::vector<Match> parts;
    for (std::size_t i = 0; i < list_.size(); ++i) {
        if (i % pieces_per_check == 0) check_cancellation();
        const Piece& piece = list_[i];
        if (piece.id != no_id) {
            result.push_back(piece);
            continue;
        }
        parts.clear();
        cut(view(piece), parts);
        for (const Match& part : parts) {
            if (part.begin == part.end) continue;
            const std::uint32_t begin = piece.begin + part.begin;
            const std::uint32_t origin = part.begin == 0 ? piece.origin : text_.span(begin).begin;
            result.push_back({begin, piece.begin + part.end, origin, no_id});
        }
    }
    list_ = std::move(result);
}

void Pieces::split(const Matcher& matcher, SplitBehavior behavior, bool invert) {
    std::vector<Match> matches;
    SearchWatch watch(text_.size());
    split([&](std::string_view piece, std::vector<Match>& parts) {
        matches.clear();
        matcher.find(piece, matches, watch);
        split_parts(matches, static_cast<std::uint32_t>(piece.size()), behavior, invert, parts);
    });
}

void Pieces::rewrite(const std::function<void(const Piece& piece, std::string_view text, const AlignedText& source,
                                              AlignedBuilder& result)>& write,
                     std::size_t more) {
    if (stands_for_bytes_) spell_bytes();
    AlignedBuilder builder(text_, more);
    for (std::size_t i = 0; i < list_.size(); ++i) {
        if (i % pieces_per_check == 0) check_cancellation();
        Piece& piece = list_[i];
        const auto begin = static_cast<std::uint32_t>(builder.size());
        if (piece.id != no_id) {
            builder.copy(piece.begin, piece.end);
        } else {
            write(piece, view(piece), text_, builder);
        }
        piece.begin = begin;
        piece.end = static_cast<std::uint32_t>(builder.size());
    }
    text_ = builder.finish();
}

void Pieces::stand_for_bytes() {
    if (stands_for_bytes_) spell_bytes();
    stands_for_bytes_ = true;
}

void Pieces::spell_bytes() {
    stands_for_bytes_ = false;
    rewrite([](const Piece& piece, std::string_view text, const AlignedText& source, AlignedBuilder& result) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            result.put(byte_spelling(static_cast<unsigned char>(text[i])), source.span(piece.begin + i));
        }
    });
}

}  // namespace headscope::tokenizer
