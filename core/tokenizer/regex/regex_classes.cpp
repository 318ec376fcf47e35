// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "core/base/error.h"
#include "core/tokenizer/regex/regex.h"
#include "core/tokenizer/unicode/unicode.h"

namespace headscope::tokenizer {

namespace {

void append_point(std::string& text, char32_t c) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\x{%X}", static_cast<unsigned>(c));
    text += buffer;
}

void append_range(std::string& text, char32_t first, char32_t last) {
    append_point(text, first);
    if (first == last) return;
    text += '-';
    append_point(text, last);
}

// Surrogates are no characters and no pattern may name them.
void append_ranges(std::string& text, const std::vector<CodePointRange>& ranges) {
    for (const CodePointRange& range : ranges) {
        if (range.last < 0xD800 || range.first > 0xDFFF) {
            append_range(text, range.first, range.last);
            continue;
        }
        if (range.first < 0xD800) append_range(text, range.first, 0xD7FF);
        if (range.last > 0xDFFF) append_range(text, 0xE000, range.last);
    }
}

// Enough for hundreds of classes; a pattern of nothing but \w could otherwise grow ten thousand times.
constexpr std::size_t longest_spelling = 4 << 20;

std::vector<CodePointRange> categories(std::initializer_list<std::string_view> names) {
    std::vector<CodePointRange> all;
    for (const std::string_view name : names) {
        const std::vector<CodePointRange> own = category_ranges(name);
        all.insert(all.end(), own.begin(), own.end());
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return all;
}

// The classes of [[:...:]] that grow with Unicode; symbols are punctuation there.
std::vector<CodePointRange> posix_ranges(std::string_view name) {
    if (name == "digit") return category_ranges("Nd");
    if (name == "word") return pattern_word_ranges(true);
    if (name == "punct") return categories({"P", "S"});
    if (name == "graph") return complement(categories({"Cc", "Cs", "Cn", "Z"}));
    if (name == "print") return complement(categories({"Cc", "Cs", "Cn", "Zl", "Zp"}));
    if (name == "alpha" || name == "alnum" || name == "upper" || name == "lower") return property_ranges_of(name);
    return {};
}

class Rewriter {
public:
    explicit Rewriter(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (at_ < pattern_.size() && result_.size() <= longest_spelling) step();
        return std::move(result_);
    }

private:
    char look(std::size_t ahead) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }

    void keep(std::size_t bytes) {
        result_.append(pattern_.substr(at_, bytes));
        at_ += bytes;
    }

    void put(const std::vector<CodePointRange>& ranges, bool negated) {
        if (depth_ > 0) {
            append_ranges(result_, negated ? complement(ranges) : ranges);
            return;
        }
        result_ += negated ? "[^" : "[";
        append_ranges(result_, ranges);
        result_ += ']';
    }

    void step() {
        const char c = look(0);
        if (c == '\\') {
            escape();
        } else if (depth_ > 0 && c == '[' && look(1) == ':') {
            posix_class();
        } else if (c == '[') {
            ++depth_;
            keep(look(1) == '^' ? 2 : 1);
            if (look(0) == ']') keep(1);  // a first ] is itself
        } else {
            if (c == ']' && depth_ > 0) --depth_;
            if (c == '(' && depth_ == 0)
                groups_.push_back((groups_.empty() ? false : groups_.back()) || opens_look_behind());
            if (c == ')' && depth_ == 0 && !groups_.empty()) groups_.pop_back();
            keep(1);
        }
    }

    void escape() {
        const char kind = look(1);
        if (kind == 'w' || kind == 'W') {
            at_ += 2;
            put(pattern_word_ranges(depth_ > 0), kind == 'W');
        } else if (kind == 'd' || kind == 'D') {
            at_ += 2;
            put(category_ranges("Nd"), kind == 'D');
        } else if ((kind == 'b' || kind == 'B') && depth_ == 0 && look(2) != '{') {
            at_ += 2;
            boundary(kind == 'B');
        } else if ((kind == 'p' || kind == 'P') && look(2) == '{') {
            property(kind == 'P');
        } else {
            keep(kind == '\0' ? 1 : 2);
        }
    }

    bool opens_look_behind() const { return look(1) == '?' && look(2) == '<' && (look(3) == '=' || look(3) == '!'); }

    // \b: a word character on one side and none on the other. Oniguruma knows no look-ahead within a look-behind: its
    // own \b stands there, whose letters are as new as the library.
    void boundary(bool negated) {
        if (!groups_.empty() && groups_.back()) {
            result_ += negated ? "\\B" : "\\b";
            return;
        }
        std::string word = "[";
        append_ranges(word, pattern_word_ranges(false));
        word += ']';
        const std::string behind = "(?<=" + word + ')', not_behind = "(?<!" + word + ')';
        const std::string ahead = "(?=" + word + ')', not_ahead = "(?!" + word + ')';
        result_ += negated ? "(?:" + behind + ahead + '|' + not_behind + not_ahead + ')'
                           : "(?:" + behind + not_ahead + '|' + not_behind + ahead + ')';
    }

    // [:alpha:] inside of brackets.
    void posix_class() {
        const std::size_t end = pattern_.find(":]", at_ + 2);
        if (end == std::string_view::npos) return keep(1);
        std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
        const bool negated = name.starts_with('^');
        if (negated) name.remove_prefix(1);
        const std::vector<CodePointRange> ranges = posix_ranges(name);
        if (ranges.empty()) return keep(end + 2 - at_);
        at_ = end + 2;
        put(ranges, negated);
    }

    void property(bool negated) {
        const std::size_t end = pattern_.find('}', at_);
        if (end == std::string_view::npos) return keep(2);
        std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
        if (!name.empty() && name.front() == '^') {
            negated = !negated;
            name.remove_prefix(1);
        }
        std::vector<CodePointRange> ranges = category_ranges(name);
        if (ranges.empty()) ranges = property_ranges_of(name);
        if (ranges.empty()) return keep(end + 1 - at_);  // what does not change: Oniguruma's own table
        at_ = end + 1;
        put(ranges, negated);
    }

    std::string_view pattern_;
    std::string result_;
    std::size_t at_ = 0;
    int depth_ = 0;
    std::vector<bool> groups_;  ///< that are open: whether in a look-behind
};

}  // namespace

std::string with_unicode_classes(std::string_view pattern, const std::string& where) {
    std::string spelled = Rewriter(pattern).run();
    if (spelled.size() > longest_spelling) {
        throw Error(ErrorCode::limit, where, "expected a pattern with at most some hundred classes of characters",
                    "found \"" + escaped(pattern, 60) + "\"");
    }
    return spelled;
}

}  // namespace headscope::tokenizer
