// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// String functions of Python's str and re that lm-eval uses, on valid UTF-8, by full Unicode rules. Threads: any.

#include <cstdint>
#include <string>
#include <string_view>

namespace headscope::evaluation {

std::string_view trimmed(std::string_view text);        ///< str.strip
std::string_view trimmed_left(std::string_view text);   ///< str.lstrip
std::string_view trimmed_right(std::string_view text);  ///< str.rstrip
std::string capitalized(std::string_view text);         ///< str.capitalize: "ß" begins as "Ss", a final sigma is one
std::string lowered(std::string_view text);             ///< str.lower; may yield several code points
std::string lowered_first(std::string_view text);       ///< the first character lowered, the rest as it is
std::int64_t code_points(std::string_view text);
/// True if `text` contains `part`, ignoring case (re.IGNORECASE of a literal).
bool contains_any_case(std::string_view text, std::string_view part);

}  // namespace headscope::evaluation
