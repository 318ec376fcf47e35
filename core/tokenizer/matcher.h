// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Things that find parts of a text: literal strings, regular expressions, classes of characters. Immutable; safe from
// several threads.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/search_watch.h"

namespace headscope::tokenizer {

/// Bytes [begin, end).
struct Match {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

class Matcher {
public:
    virtual ~Matcher() = default;
    /// Adds all matches in `text` from left to right, none overlapping. A match may be empty. `watch` is that of all
    /// texts which are searched together.
    virtual void find(std::string_view text, std::vector<Match>& matches, SearchWatch& watch) const = 0;
    void find(std::string_view text, std::vector<Match>& matches) const {
        SearchWatch watch(text.size());
        find(text, matches, watch);
    }
};

/// Every occurrence of `text`; the empty text matches between all characters, as an empty regular expression does.
std::unique_ptr<Matcher> literal_matcher(std::string text);

/// Every character that `belongs` says yes to.
std::unique_ptr<Matcher> character_matcher(bool (*belongs)(char32_t));
/// Every occurrence of one character.
std::unique_ptr<Matcher> character_matcher(char32_t c);

/// A regular expression in Oniguruma's syntax. The best-known patterns of tokenizers run in scanners of our own.
/// Throws Error(format) that names `where` for one that does not compile; find() throws Error(limit) when a search
/// passes the limits on steps, memory and time.
std::unique_ptr<Matcher> pattern_matcher(const std::string& pattern, const std::string& where);

/// What happens to the matches when a text is split by them.
enum class SplitBehavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// The parts of a text of `size` bytes; matches and the text between them (swapped by `invert`). Parts may be empty.
void split_parts(const std::vector<Match>& matches, std::uint32_t size, SplitBehavior behavior, bool invert,
                 std::vector<Match>& parts);

}  // namespace headscope::tokenizer
