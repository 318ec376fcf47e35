// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one spelling of tokens: in figures, in the window and on the terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace headscope::figures {

/// A token's piece as a label that hides nothing: space "␣", line feed "↵", carriage return "␍", tab "⇥", no-break and
/// other spaces, joiners with nothing to join, bidirectional marks and further controls "‹U+200D›", bytes that are not
/// UTF-8 "‹xE2›", the empty piece "∅". Marks stay with their base, or get a dotted circle. At most `limit` characters
/// (at least 3), elided in the middle with "…".
std::string visible_token(std::string_view piece, std::size_t limit = 14);

/// The stand-in of a character in such a label; empty if the character shows itself.
std::string stand_in(char32_t point);
std::string code_point_name(char32_t point);  ///< "‹U+200D›"
std::string byte_name(unsigned char byte);    ///< "‹xE2›"

}  // namespace headscope::figures
