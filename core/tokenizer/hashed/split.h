// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A text's words, as hash embeddings read them: lower-cased, then runs of word characters (general categories L and N,
// and the underscore) and runs of others, cut at white space. Python's re.findall(r"\w+|[^\w\s]+", text.lower()).
// Nothing is normalised; marks are no word characters. Threads: any.

#include <cstdint>
#include <functional>
#include <string_view>

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

struct SplitWord {
    std::string_view piece;   ///< lower-cased UTF-8; valid during the call
    std::uint32_t begin = 0;  ///< bytes [begin, end) of the text that it came from; of a character that became two
    std::uint32_t end = 0;    ///< (U+0130) each half has all
};

/// Calls take(word) for each, in order. `text` must be UTF-8 below 2 GiB: Error(format) names the first byte that is
/// not. Throws Stopped when cancelled.
void split_words(std::string_view text, const std::function<void(const SplitWord&)>& take,
                 const Cancellation* cancellation = nullptr);

}  // namespace headscope::tokenizer
