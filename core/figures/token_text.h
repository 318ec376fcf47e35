// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headscope::figures {

/// A token's piece as a label that hides nothing: space "␣", line feed "↵", carriage return "␍", tab "⇥", no-break and
/// other spaces, joiners, bidirectional marks and further controls "‹U+200D›", bytes that are not UTF-8 "‹xE2›", the
/// empty piece "∅". At most `limit` characters, elided in the middle with "…".
std::string visible_token(std::string_view piece, std::size_t limit = 14);

}  // namespace headscope::figures
