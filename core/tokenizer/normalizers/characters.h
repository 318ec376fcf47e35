// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Edits character by character, shared by the normalisers.

#include "core/tokenizer/aligned_text.h"

namespace headscope::tokenizer {

/// Takes out the characters that `keep` says no to.
void filter_characters(AlignedText& text, bool (*keep)(char32_t));
/// Puts `map` of each character in its place.
void map_characters(AlignedText& text, char32_t (*map)(char32_t));
/// Lower case, character by character.
void lower_characters(AlignedText& text);

}  // namespace headscope::tokenizer
