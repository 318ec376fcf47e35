// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// How texts are cut to a length: as the tokenizers package's truncation "longest_first" does, on the side that the
// tokenizer's files name. Threads: any.

#include <cstdint>
#include <utility>
#include <vector>

#include "core/data/tokenizer_choice.h"

namespace headscope::data {

/// Tokens left of two texts of `first` and `second` tokens where both together may have `room`.
std::pair<std::int64_t, std::int64_t> longest_first(std::int64_t first, std::int64_t second, std::int64_t room);

/// True if truncation keeps a text's end: truncation_side "left" in tokenizer_config.json among `files`, else the
/// direction of tokenizer.json's truncation. Error format for another side.
bool keeps_the_end(const std::vector<TokenizerFile>& files);

}  // namespace headscope::data
