// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/store/evaluation/evaluation_file.h"

namespace headscope::store {

/// Most bytes of a name in a row: figures repeat it with each value.
inline constexpr std::size_t kLongestWord = 256;

/// The last whole characters of valid UTF-8 that fit into kLongestWord: names of files differ at their ends.
std::string short_word(std::string word);

/// Fills in `text` and `data_sha256` of results of a file before version 6, whose settings alone name texts and data
/// files. What the settings do not say stays unknown.
void name_texts(Evaluation& evaluation);

}  // namespace headscope::store
