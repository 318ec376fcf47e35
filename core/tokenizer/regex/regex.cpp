// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex/regex.h"

#include <oniguruma.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::tokenizer {

namespace {

// The reference's own limit on steps; the stack's, which it lacks, keeps a search below some 300 MB. Few searches need
// many steps: they are tried with less first, so that somebody may look at the time in between; with the less, the
// longer the way forward between two steps back may be.
constexpr unsigned long most_steps = 10'000'000;
unsigned long first_steps(std::size_t text) {
    return std::clamp<unsigned long>(50'000'000 / (text + 1), 16, 100'000);
}
constexpr unsigned stack_entries = 4'000'000;
constexpr std::size_t longest_pattern = 1 << 16;

void initialise() {
    static std::once_flag once;
    std::call_once(once, [] {
        OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
        onig_initialize(encodings, 1);
        onig_set_warn_func([](const char*) {});  // core prints nothing
        onig_set_verb_warn_func([](const char*) {});
    });
}

const OnigUChar* bytes(const char* text) {
    return reinterpret_cast<const OnigUChar*>(text);
}

std::string message(int code, OnigErrorInfo* info) {
    OnigUChar buffer[ONIG_MAX_ERROR_MESSAGE_LEN];
    const int length =
        info != nullptr ? onig_error_code_to_str(buffer, code, info) : onig_error_code_to_str(buffer, code);
    // It may quote the pattern.
    return escaped({reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length > 0 ? length : 0)});
}

}  // namespace

RegexMatcher::RegexMatcher(const std::string& pattern, const std::string& where)
    : where_(where), uses_search_start_(pattern.find("\\G") != std::string::npos) {
    if (pattern.size() > longest_pattern) {
        throw Error(ErrorCode::limit, where,
                    "expected a pattern of at most " + std::to_string(longest_pattern) + " bytes",
                    "found " + std::to_string(pattern.size()));
    }
    initialise();
    const std::string spelled = with_unicode_classes(pattern, where);
    OnigErrorInfo info{};
    const int code = onig_new(&regex_, bytes(spelled.data()), bytes(spelled.data() + spelled.size()), ONIG_OPTION_NONE,
                              ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL) {
        throw Error(ErrorCode::format, where, "expected a regular expression",
                    "found \"" + escaped(pattern, 60) + "\": " + message(code, &info));
    }
}

RegexMatcher::~RegexMatcher() {
    onig_free(regex_);
}

// Oniguruma counts the steps back but not those forward, and tries one place after the other without end: a search may
// cost a square of the text. In a long text one place at a time is tried, and the time looked at in between.
class RegexMatcher::Search {
public:
    Search(const RegexMatcher& matcher, std::string_view text, SearchWatch& watch)
        : matcher_(matcher),
          text_(text),
          begin_(bytes(text.data())),
          end_(begin_ + text.size()),
          watch_(watch),
          region_(onig_region_new()),
          parameters_(onig_new_match_param()),
          step_by_step_(text.size() > short_text && !matcher.uses_search_start_) {
        if (region_ == nullptr || parameters_ == nullptr) throw std::bad_alloc();
        onig_initialize_match_param(parameters_.get());
        onig_set_match_stack_limit_size_of_match_param(parameters_.get(), stack_entries);
        allow(first_steps(text.size()));
    }

    /// The first match at or after `at`; false for none.
    bool next(std::size_t at, Match& match) {
        bool found = run(at);
        while (!found && step_by_step_ && at < text_.size()) {
            at += utf8_length(text_[at]);
            found = run(at);
        }
        if (found) match = {static_cast<std::uint32_t>(region_->beg[0]), static_cast<std::uint32_t>(region_->end[0])};
        return found;
    }

private:
    static constexpr std::size_t short_text = 1 << 14;  // its square costs a tenth of a second

    struct RegionDeleter {
        void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
    };
    struct ParametersDeleter {
        void operator()(OnigMatchParam* parameters) const { onig_free_match_param(parameters); }
    };

    void allow(unsigned long steps) {
        steps_ = steps;
        onig_set_retry_limit_in_match_of_match_param(parameters_.get(), steps);
        onig_set_retry_limit_in_search_of_match_param(parameters_.get(), steps);
    }

    // A match at `at`, or, in a short text, the first one from there on.
    bool run(std::size_t at) {
        for (;;) {
            watch_.look(matcher_.where_);
            onig_region_clear(region_.get());
            const int code = step_by_step_ ? onig_match_with_param(matcher_.regex_, begin_, end_, begin_ + at,
                                                                   region_.get(), ONIG_OPTION_NONE, parameters_.get())
                                           : onig_search_with_param(matcher_.regex_, begin_, end_, begin_ + at, end_,
                                                                    region_.get(), ONIG_OPTION_NONE, parameters_.get());
            if (code >= 0 || code == ONIG_MISMATCH) {
                if (const unsigned long usual = first_steps(text_.size()); steps_ != usual) allow(usual);
                return code >= 0;
            }
            const bool impatient =
                code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
            if (!impatient || steps_ >= most_steps) {
                throw Error(ErrorCode::limit, matcher_.where_,
                            "expected a pattern that matches within the limits on steps and memory",
                            "found " + message(code, nullptr) + " after byte " + std::to_string(at));
            }
            watch_.look_closely(matcher_.where_);
            allow(std::min(steps_ * 4, most_steps));
        }
    }

    const RegexMatcher& matcher_;
    std::string_view text_;
    const OnigUChar* begin_;
    const OnigUChar* end_;
    SearchWatch& watch_;
    std::unique_ptr<OnigRegion, RegionDeleter> region_;
    std::unique_ptr<OnigMatchParam, ParametersDeleter> parameters_;
    bool step_by_step_;
    unsigned long steps_ = 0;
};

void RegexMatcher::each(std::string_view text, SearchWatch& watch, const TakeMatch& take) const {
    Search search(*this, text, watch);
    bool any = false;
    std::size_t last = 0;
    Match match;
    for (std::size_t at = 0; at <= text.size() && search.next(at, match);) {
        if (match.begin == match.end && any && match.end == last) {  // an empty match right after a match is none
            at = match.end + (match.end < text.size() ? utf8_length(text[match.end]) : 1);
            continue;
        }
        take(match);
        any = true;
        at = last = match.end;
    }
}

}  // namespace headscope::tokenizer
