// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A template's text cut into data and the words of its tags, with the white space rules that transformers sets
// (trim_blocks, lstrip_blocks) and those of "-" and "+" beside brackets.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/template/fault.h"

namespace headscope::tokenizer::chat {

enum class Kind : std::uint8_t {
    data,            ///< text to print as it is
    block_begin,     ///< {%
    block_end,       ///< %}
    variable_begin,  ///< {{
    variable_end,    ///< }}
    name,
    string,  ///< text: unescaped
    integer,
    real,
    symbol,  ///< text: "+", "==", ...
    end,
};

struct Token {
    Kind kind = Kind::end;
    std::string text;
    std::int64_t integer = 0;
    double real = 0;
    std::size_t at = 0;  ///< byte of the template
};

/// The last one is Kind::end. `at` is where it stands when it throws Fault. `source` must be valid UTF-8.
std::vector<Token> cut(std::string_view source, std::size_t& at);

/// "line 3, column 14" of a byte; both from 1, columns in characters.
std::string place(std::string_view source, std::size_t at);

}  // namespace headscope::tokenizer::chat
