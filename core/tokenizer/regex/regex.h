// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer/regex/matcher.h"

struct re_pattern_buffer;

namespace headscope::tokenizer {

/// Oniguruma, the reference's engine, with Unicode 16's classes written into the pattern (Debian's knows Unicode 14)
/// and with limits, so that no pattern of a foreign file can take minutes or gigabytes.
class RegexMatcher final : public Matcher {
public:
    RegexMatcher(const std::string& pattern, const std::string& where);
    ~RegexMatcher() override;
    RegexMatcher(const RegexMatcher&) = delete;
    RegexMatcher& operator=(const RegexMatcher&) = delete;

    using Matcher::each;
    void each(std::string_view text, SearchWatch& watch, const TakeMatch& take) const override;

private:
    class Search;

    re_pattern_buffer* regex_ = nullptr;
    std::string where_;
    bool uses_search_start_;  ///< \G: what matches hangs on where a search began
};

/// `pattern` with \w, \d, their negations and every \p{...} of a general category spelled out as ranges.
std::string with_unicode_classes(std::string_view pattern, const std::string& where);

}  // namespace headscope::tokenizer
