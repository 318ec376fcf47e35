// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Stretches of a text that belong together: grapheme clusters (Unicode 16, annex 29) and scripts, as the reference (the
// `tokenizers` library) sees them. The tables are made by generate_segments.py.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headscope::tokenizer {

/// End of the extended grapheme cluster that starts at byte `begin` < text.size() of valid UTF-8.
std::size_t cluster_end(std::string_view text, std::size_t begin);

/// A number of its own for each script, 0 for characters that go with every script. Hiragana, Katakana and Han are one.
std::uint8_t script(char32_t c);

}  // namespace headscope::tokenizer
