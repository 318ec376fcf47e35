// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Lower case by Unicode's full rules, as Python's str.lower has it: U+0130 becomes two characters, a capital sigma at a
// word's end one of its own. Over valid UTF-8. Threads: any.

#include <cstddef>
#include <string_view>

namespace headscope::tokenizer {

inline constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;

/// True if the capital sigma at byte `at` ends a word: after a letter and before none, ignoring case-ignorable
/// characters (Unicode 3.13, Final_Sigma).
bool ends_word(std::string_view text, std::size_t at);

}  // namespace headscope::tokenizer
