// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "core/tokenizer/tokenizer.h"

namespace headscope::fuzz {

/// Checks invariants of every encoding: arrays of one length, ids within the vocabulary, offsets inside the text, on
/// characters (but for tokens that are bytes), begin before end and (but for inserted tokens) in order. Decodes it,
/// too, which must give UTF-8.
void check_encoding(const tokenizer::Tokenizer& tokenizer, std::string_view text, const tokenizer::Encoding& encoding,
                    bool bytes = false);

}  // namespace headscope::fuzz
