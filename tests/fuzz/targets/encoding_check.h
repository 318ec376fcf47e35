// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

#include "core/tokenizer/tokenizer.h"

namespace headscope::fuzz {

/// What must be true of every encoding, whatever the tokenizer: arrays of one length, ids that have a place in the
/// vocabulary, offsets inside the text, on characters (but for tokens that are bytes), begin before end and (but for
/// inserted tokens) in order. Decodes it too, which must give UTF-8.
void check_encoding(const tokenizer::Tokenizer& tokenizer, std::string_view text, const tokenizer::Encoding& encoding,
                    bool bytes = false);

}  // namespace headscope::fuzz
