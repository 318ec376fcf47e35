// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Things that find parts of a text: literal strings, regular expressions, classes of characters. Immutable; safe from
// several threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tokenizer/regex/search_watch.h"

namespace headscope::tokenizer {

/// Bytes [begin, end).
struct Match {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};
using TakeMatch = std::function<void(Match)>;

class Matcher {
public:
    virtual ~Matcher() = default;
    /// Calls take for all matches in `text` from left to right, none overlapping. A match may be empty. `watch` is that
    /// of all texts which are searched together.
    virtual void each(std::string_view text, SearchWatch& watch, const TakeMatch& take) const = 0;
    void each(std::string_view text, const TakeMatch& take) const {
        SearchWatch watch(text.size());
        each(text, watch, take);
    }
    /// Adds all matches to a list: for texts that are not large.
    void find(std::string_view text, std::vector<Match>& matches) const {
        each(text, [&matches](Match match) { matches.push_back(match); });
    }
};

/// Every occurrence of `text`; the empty text matches between all characters, as an empty regular expression does.
std::unique_ptr<Matcher> literal_matcher(std::string text);

/// Every character that `belongs` says yes to.
std::unique_ptr<Matcher> character_matcher(bool (*belongs)(char32_t));
/// Every occurrence of one character.
std::unique_ptr<Matcher> character_matcher(char32_t c);

/// A regular expression in Oniguruma's syntax. The best-known patterns of tokenizers run in scanners of our own.
/// Throws Error(format) that names `where` for one that does not compile; each() throws Error(limit) when a search
/// passes the limits on steps, memory and time.
std::unique_ptr<Matcher> pattern_matcher(const std::string& pattern, const std::string& where);

/// Treatment of the matches when they split a text.
enum class SplitBehavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// The parts of one text, made of its matches as they come: the matches and the text between them (swapped by
/// `invert`). Calls take(Match) for each part, some of which may be empty.
template <class Take>
class PartMaker {
public:
    PartMaker(std::uint32_t size, SplitBehavior behavior, bool invert, Take take)
        : size_(size), behavior_(behavior), invert_(invert), take_(std::move(take)) {}

    void match(Match match) {
        if (last_ != match.begin) part({last_, match.begin}, invert_);
        part(match, !invert_);
        last_ = match.end;
    }
    void finish() {
        if (last_ != size_) part({last_, size_}, invert_);
        if (open_) take_(waiting_);
    }

private:
    void part(Match part, bool delimiter) {
        if (behavior_ != SplitBehavior::removed || !delimiter) {
            if (open_ && joins(delimiter)) {
                waiting_.end = part.end;
            } else {
                if (open_) take_(waiting_);
                waiting_ = part;
                open_ = true;
            }
        }
        previous_ = delimiter;
    }
    bool joins(bool delimiter) const {
        switch (behavior_) {
            case SplitBehavior::contiguous:
                return delimiter == previous_;
            case SplitBehavior::merged_with_previous:
                return delimiter && !previous_;
            case SplitBehavior::merged_with_next:
                return !delimiter && previous_;
            default:
                return false;
        }
    }

    std::uint32_t size_;
    SplitBehavior behavior_;
    bool invert_;
    Take take_;
    std::uint32_t last_ = 0;
    Match waiting_;          ///< the last part, which may still grow
    bool open_ = false;      ///< there is one
    bool previous_ = false;  ///< whether the part before was a delimiter
};

/// The parts of a text of `size` bytes as a list.
void split_parts(const std::vector<Match>& matches, std::uint32_t size, SplitBehavior behavior, bool invert,
                 std::vector<Match>& parts);

}  // namespace headscope::tokenizer
