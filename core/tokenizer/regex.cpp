// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/regex.h"

#include <oniguruma.h>

#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/tokenizer/utf8.h"

namespace headscope::tokenizer {

namespace {

// The reference's own limit on steps; the stack's, which it lacks, keeps a search below some 300 MB.
constexpr unsigned long steps_per_match = 10'000'000;
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
    return {reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length > 0 ? length : 0)};
}

struct RegionDeleter {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
struct ParametersDeleter {
    void operator()(OnigMatchParam* parameters) const { onig_free_match_param(parameters); }
};

}  // namespace

RegexMatcher::RegexMatcher(const std::string& pattern, const std::string& where) : where_(where) {
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

void RegexMatcher::find(std::string_view text, std::vector<Match>& matches) const {
    const std::unique_ptr<OnigRegion, RegionDeleter> region(onig_region_new());
    const std::unique_ptr<OnigMatchParam, ParametersDeleter> parameters(onig_new_match_param());
    if (region == nullptr || parameters == nullptr) throw std::bad_alloc();
    onig_initialize_match_param(parameters.get());
    onig_set_retry_limit_in_match_of_match_param(parameters.get(), steps_per_match);
    onig_set_match_stack_limit_size_of_match_param(parameters.get(), stack_entries);
    const OnigUChar* const begin = bytes(text.data());
    const OnigUChar* const end = begin + text.size();
    bool any = false;
    std::size_t last = 0;
    for (std::size_t at = 0; at <= text.size();) {
        onig_region_clear(region.get());
        const int code = onig_search_with_param(regex_, begin, end, begin + at, end, region.get(), ONIG_OPTION_NONE,
                                                parameters.get());
        if (code == ONIG_MISMATCH) return;
        if (code < 0) {
            throw Error(ErrorCode::limit, where_,
                        "expected a pattern that matches within the limits on steps and memory",
                        "found " + message(code, nullptr) + " after byte " + std::to_string(at));
        }
        const auto first = static_cast<std::size_t>(region->beg[0]);
        const auto past = static_cast<std::size_t>(region->end[0]);
        if (first == past && any && past == last) {  // an empty match right after a match is none
            at += at < text.size() ? utf8_length(text[at]) : 1;
            continue;
        }
        matches.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(past)});
        any = true;
        at = last = past;
    }
}

}  // namespace headscope::tokenizer
