// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

/// Length in bytes (1 to 4) of the UTF-8 sequence that `text` begins with, and its code point; 0 where there is none:
/// empty text, stray or missing continuation bytes, overlong forms, surrogates, beyond U+10FFFF.
std::size_t decode_utf8(std::string_view text, char32_t& point);

/// Byte offset of the first byte that is no valid UTF-8; std::string_view::npos when all is valid.
std::size_t find_invalid_utf8(std::string_view text);

/// False for what a terminal would act on instead of showing it: control characters, line ends, bidirectional marks.
bool is_showable(char32_t point);

/// Text of several lines for a terminal: as escaped() (error.h), but line ends and tabs stay, and all of it is there.
std::string showable_lines(std::string_view text);

/// A size for people, in units of 1000: "999 B", "6.86 MB", "3.30 GB".
std::string size_text(std::uint64_t bytes);

/// "2030-01-02T03:04:05Z" of seconds since 1970; a time before that, or no number, is 1970.
std::string utc_text(double seconds);
std::string utc_now();

/// A number by a format of printf: printf_text("%.3g", 0.5).
std::string printf_text(const char* format, double value);

/// A number with `digits` significant ones and a unit of 1000: "999", "12.3 k", "4.56 M", up to T.
std::string prefixed_text(double value, int digits);

/// A count for people, digits in groups of three: "3 428 352".
std::string count_text(std::uint64_t count);

/// `text`, or where it is longer than `most` bytes of UTF-8 its first whole characters and what is left out, counted:
/// "In the begin … 212 bytes more".
std::string shortened(std::string_view text, std::size_t most);

/// At most `most` of the items, quoted, escaped, separated by commas; what is left out is counted: ... and 12 more.
std::string list_text(const std::vector<std::string>& items, std::size_t most = 10);

bool contains(const std::vector<std::string>& items, std::string_view item);

/// The items with `between` after each but the last.
std::string joined_text(const std::vector<std::string>& items, std::string_view between);

/// The parts of a text between separators, as std::getline reads them: none behind the last separator.
std::vector<std::string> separated_parts(const std::string& text, char separator);

}  // namespace headscope
