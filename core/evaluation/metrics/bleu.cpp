// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/evaluation/metrics/python_text.h"
#include "core/tokenizer/template/python_text.h"

namespace headscope::evaluation {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_point(char c) {
    return c == '.' || c == ',';
}
/// ASCII signs that stand apart always: all but ' , - and the full stop.
bool is_apart(char c) {
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/' ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string with_replaced(std::string text, std::string_view old, std::string_view with) {
    std::string made;
    std::size_t at = 0;
    for (std::size_t found = 0; (found = text.find(old, at)) != std::string::npos; at = found + old.size())
        made.append(text, at, found - at).append(with);
    return made.append(text, at);
}

/// Calls `join` for each pair of neighbors that `matches`, then skips both; copies all else. The signs in question are
/// ASCII, so bytes of longer characters never match.
template <class Matches, class Join>
std::string each_pair(const std::string& text, const Matches& matches, const Join& join) {
    std::string made;
    std::size_t i = 0;
    while (i < text.size()) {
        if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
            join(made, text[i], text[i + 1]);
            i += 2;
        } else {
            made += text[i++];
        }
    }
    return made;
}

using Grams = std::map<std::vector<std::string>, std::int64_t>;

Grams grams_of(const std::vector<std::string>& tokens, std::size_t order) {
    Grams grams;
    for (std::size_t i = 0; i + order <= tokens.size(); ++i)
        ++grams[{tokens.begin() + static_cast<std::ptrdiff_t>(i),
                 tokens.begin() + static_cast<std::ptrdiff_t>(i + order)}];
    return grams;
}

}  // namespace

std::vector<std::string> bleu_tokens(std::string_view segment) {
    std::string text(trimmed_right(segment));
    text = with_replaced(with_replaced(with_replaced(text, "<skipped>", ""), "-\n", ""), "\n", " ");
    text = with_replaced(with_replaced(text, "&quot;", "\""), "&amp;", "&");
    text = with_replaced(with_replaced(text, "&lt;", "<"), "&gt;", ">");
    std::string apart = " ";
    for (const char c : text) {
        if (is_apart(c))
            apart.append(1, ' ').append(1, c).append(1, ' ');
        else
            apart += c;
    }
    apart += ' ';
    apart = each_pair(
        apart, [](char a, char b) { return !is_digit(a) && is_point(b); },
        [](std::string& made, char a, char b) { made.append(1, a).append(1, ' ').append(1, b).append(1, ' '); });
    apart = each_pair(
        apart, [](char a, char b) { return is_point(a) && !is_digit(b); },
        [](std::string& made, char a, char b) { made.append(1, ' ').append(1, a).append(1, ' ').append(1, b); });
    apart = each_pair(
        apart, [](char a, char b) { return is_digit(a) && b == '-'; },
        [](std::string& made, char a, char b) { made.append(1, a).append(1, ' ').append(1, b).append(1, ' '); });
    return tokenizer::chat::split(apart, nullptr, -1, false);
}

void BleuCounts::add(std::string_view said, std::string_view reference) {
    const std::vector<std::string> mine = bleu_tokens(said), theirs = bleu_tokens(reference);
    said_ += std::ssize(mine);
    reference_ += std::ssize(theirs);
    ++segments_;
    for (std::size_t n = 0; n < kOrders; ++n) {
        const Grams known = grams_of(theirs, n + 1);
        for (const auto& [gram, count] : grams_of(mine, n + 1)) {
            total_[n] += count;
            if (const auto found = known.find(gram); found != known.end())
                correct_[n] += std::min(count, found->second);
        }
    }
}

double BleuCounts::brevity_penalty() const {
    if (said_ >= reference_) return 1;
    return said_ == 0 ? 0 : std::exp(1 - static_cast<double>(reference_) / static_cast<double>(said_));
}

double BleuCounts::score() const {
    if (correct_[0] == 0) return 0;
    double smooth = 1, logs = 0;
    for (std::size_t n = 0; n < kOrders; ++n) {
        if (total_[n] == 0) return 0;
        if (correct_[n] == 0) smooth *= 2;
        const double matches = correct_[n] == 0 ? 1 / smooth : static_cast<double>(correct_[n]);
        logs += std::log(100 * matches / static_cast<double>(total_[n]));
    }
    return brevity_penalty() * std::exp(logs / kOrders);
}

}  // namespace headscope::evaluation
