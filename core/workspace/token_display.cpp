// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/token_display.h"

#include <algorithm>
#include <array>

#include "core/base/text/text.h"
#include "core/figures/token_text.h"

namespace headscope::workspace {
namespace {

constexpr std::int64_t longest_group = 256;

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Ends inside a character: a lead byte without all that should follow, or nothing but bytes that follow.
bool ends_inside(std::string_view piece) {
    std::size_t lead = piece.size();
    while (lead > 0 && piece.size() - lead < 4 && continues(piece[lead - 1])) --lead;
    if (lead == 0) return !piece.empty() && continues(piece[0]);
    const auto byte = static_cast<unsigned char>(piece[lead - 1]);
    const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return piece.size() - (lead - 1) < size;
}

bool is_white(std::string_view text) {
    return !text.empty() && text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos;
}

}  // namespace

std::string TokenChip::numbered() const {
    return parts > 1 ? label + " " + std::to_string(part) + "/" + std::to_string(parts) : label;
}

TokenDisplay::TokenDisplay(const store::SequenceTokens& sequence, std::set<std::int32_t> special_ids)
    : sequence_(sequence), special_ids_(std::move(special_ids)) {}

std::int64_t TokenDisplay::size() const {
    return static_cast<std::int64_t>(sequence_.ids.size());
}

/// Offsets that lie in the text.
bool TokenDisplay::has_text(std::int64_t token) const {
    if (static_cast<std::size_t>(token) >= sequence_.offsets.size()) return false;
    const auto [begin, end] = sequence_.offsets[static_cast<std::size_t>(token)];
    return begin >= 0 && begin < end && static_cast<std::size_t>(end) <= sequence_.text.size();
}

std::string_view TokenDisplay::piece(std::int64_t token) const {
    const auto at = static_cast<std::size_t>(token);
    return at < sequence_.pieces.size() ? std::string_view(sequence_.pieces[at]) : std::string_view();
}

bool TokenDisplay::special(std::int64_t token) const {
    if (special_ids_.contains(sequence_.ids[static_cast<std::size_t>(token)])) return true;
    const auto at = static_cast<std::size_t>(token);
    return !sequence_.text.empty() && at < sequence_.offsets.size() &&
           sequence_.offsets[at] == std::array<std::int64_t, 2>{0, 0};
}

/// True if a token shares a character with the one before it.
bool TokenDisplay::joined(std::int64_t token) const {
    if (token <= 0 || special(token) || special(token - 1)) return false;
    const std::string_view here = piece(token), before = piece(token - 1);
    if (!has_text(token) || !has_text(token - 1)) return !here.empty() && continues(here[0]) && ends_inside(before);
    const auto [begin, end] = sequence_.offsets[static_cast<std::size_t>(token)];
    const auto [begin_before, end_before] = sequence_.offsets[static_cast<std::size_t>(token) - 1];
    // A window's tokens may begin inside a character, where a text was cut.
    if (begin == end_before) return continues(sequence_.text[static_cast<std::size_t>(begin)]);
    if (begin < begin_before || begin >= end_before) return false;
    // The repeated-token probe gives every token the place of the first one; a whole piece shares nothing there.
    const auto at = static_cast<std::size_t>(token);
    const bool repeated =
        sequence_.ids[at] == sequence_.ids[at - 1] && sequence_.offsets[at] == sequence_.offsets[at - 1];
    return !repeated || (!here.empty() && (continues(here[0]) || ends_inside(here)));
}

TokenDisplay::Group TokenDisplay::group(std::int64_t token) const {
    std::int64_t begin = token;
    while (joined(begin)) --begin;
    // Cut long ones at multiples of the longest, so that every token of one finds the same group.
    begin += (token - begin) / longest_group * longest_group;
    return group_from(begin);
}

TokenDisplay::Group TokenDisplay::group_from(std::int64_t begin) const {
    std::int64_t end = begin + 1;
    while (end < size() && end < begin + longest_group && joined(end)) ++end;
    return {begin, end};
}

std::string TokenDisplay::text_of(Group group) const {
    if (special(group.begin) && !piece(group.begin).empty()) return std::string(piece(group.begin));
    std::int64_t begin = -1, end = -1;
    std::string text;
    for (std::int64_t token = group.begin; token < group.end; ++token) {
        text += piece(token);
        if (!has_text(token)) continue;
        const auto [from, to] = sequence_.offsets[static_cast<std::size_t>(token)];
        begin = begin < 0 ? from : std::min(begin, from);
        end = std::max(end, to);
    }
    // A single token is its piece, where it has one: the text does not say what a normaliser made of it, nor where a
    // space before a word went.
    const bool whole = group.end - group.begin == 1 && !text.empty() && find_invalid_utf8(text) == std::string::npos;
    if (begin < 0 || whole) return text;
    return sequence_.text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::vector<TokenChip> TokenDisplay::chips(std::int64_t first, std::int64_t count, std::size_t limit) const {
    std::vector<TokenChip> all;
    first = std::clamp<std::int64_t>(first, 0, size());
    const std::int64_t last = first + std::clamp<std::int64_t>(count, 0, size() - first);
    all.reserve(static_cast<std::size_t>(last - first));
    for (std::int64_t token = first; token < last;) {
        const Group here = all.empty() ? group(token) : group_from(token);
        TokenChip chip;
        std::string text = text_of(here);
        chip.id = sequence_.ids[static_cast<std::size_t>(token)];
        chip.label = text.empty() && piece(token).empty() && here.end - here.begin == 1 &&
                             static_cast<std::size_t>(token) >= sequence_.pieces.size()
                         ? "#" + std::to_string(chip.id)
                         : figures::visible_token(text, limit);
        chip.first = here.begin;
        chip.parts = static_cast<std::int32_t>(here.end - here.begin);
        chip.special = special(token);
        chip.white_space = !chip.special && is_white(text);
        chip.ends_line = !chip.special && text.find('\n') != std::string::npos;
        for (; token < std::min(here.end, last); ++token) {
            chip.token = token;
            chip.id = sequence_.ids[static_cast<std::size_t>(token)];
            chip.part = static_cast<std::int32_t>(token - here.begin + 1);
            all.push_back(chip);
        }
    }
    return all;
}

TokenChip TokenDisplay::chip(std::int64_t token, std::size_t limit) const {
    auto all = chips(token, 1, limit);
    return all.empty() ? TokenChip{} : std::move(all[0]);
}

}  // namespace headscope::workspace
