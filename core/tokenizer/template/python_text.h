// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Python's strings (3.12) over UTF-8 that is known to be valid: positions and lengths count characters.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/template/value.h"

namespace headscope::tokenizer::chat {

bool is_white(char32_t point);
/// Bytes of white space that `text` begins with, or ends with.
std::size_t white_begin(std::string_view text);
std::size_t white_end(std::string_view text);
/// str.strip and the like. `characters`: the set to strip; null: white space.
std::string_view stripped(std::string_view text, const std::string* characters, bool left, bool right);

/// Case by single characters, and "ß" to "SS".
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
/// str.title, which begins a word after whatever is no letter.
std::string titled(std::string_view text);
/// Every character has this case, and one has a case at all.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

/// str.split and str.rsplit; `separator` null: runs of white space. `most` < 0: no limit.
std::vector<std::string> split(std::string_view text, const std::string* separator, std::int64_t most, bool from_right);
/// str.splitlines.
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::int64_t most,
                     Budget& budget);
std::vector<std::string> characters(std::string_view text);

/// repr() of a float; of a string, in quotes.
std::string float_text(double value);
std::string quoted(std::string_view text);

/// str() and repr() of a value; Fault for what has no text of its own (functions, namespaces).
std::string plain_text(const Value& value, Budget& budget);
std::string code_text(const Value& value, Budget& budget);

struct JsonStyle {
    bool ascii = false;
    bool sort_keys = false;
    bool lines = false;  ///< each entry on a line of its own, behind `indent` for each level
    std::string indent;
    std::string item_separator = ", ", key_separator = ": ";
};
/// json.dumps.
std::string json_text(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace headscope::tokenizer::chat
