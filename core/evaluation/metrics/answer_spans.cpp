// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/metrics/answer_spans.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "core/evaluation/metrics/long_answers.h"
#include "core/evaluation/metrics/python_text.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::evaluation {
namespace {

bool is_ascii_punctuation(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Python's \w; marks are none.
bool is_python_word(char32_t point) {
    constexpr int letters = tokenizer::bit_letter | tokenizer::bit_number;
    return point == '_' || (tokenizer::character_bits(point) & letters) != 0;
}

/// \b(a|an|the)\b -> " ".
std::string without_articles(std::string_view text) {
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size()) {
            const auto [point, length] = tokenizer::decode_utf8(text, end);
            if (!is_python_word(point)) break;
            end += length;
        }
        const std::string_view word = text.substr(at, end - at);
        made += word == "a" || word == "an" || word == "the" ? std::string_view(" ") : word;
        at = end;
        if (at == text.size()) break;
        const std::size_t length = tokenizer::utf8_length(text[at]);
        made += text.substr(at, length);
        at += length;
    }
    return made;
}

std::vector<std::string> words_of(std::string_view text) {
    return tokenizer::chat::split(text, nullptr, -1, false);
}

double f1_of(const std::vector<std::string>& said, const std::vector<std::string>& truth) {
    if (said.empty() || truth.empty()) return said.empty() && truth.empty() ? 1 : 0;
    std::map<std::string, std::int64_t> left;
    for (const std::string& word : truth) ++left[word];
    std::int64_t same = 0;
    for (const std::string& word : said) {
        const auto found = left.find(word);
        if (found == left.end() || found->second == 0) continue;
        --found->second;
        ++same;
    }
    if (same == 0) return 0;
    const double precision = static_cast<double>(same) / static_cast<double>(said.size());
    const double recall = static_cast<double>(same) / static_cast<double>(truth.size());
    return 2 * precision * recall / (precision + recall);
}

}  // namespace

std::string normalized_answer(std::string_view text) {
    std::string lower = lowered(text);
    std::erase_if(lower, is_ascii_punctuation);
    std::string made;
    for (const std::string& word : words_of(without_articles(lower))) made += (made.empty() ? "" : " ") + word;
    return made;
}

SpanScore span_score(std::string_view said, std::span<const std::string> truths) {
    const std::string answer = normalized_answer(said);
    std::vector<std::string> wanted;
    for (const std::string& truth : truths)
        if (std::string text = normalized_answer(truth); !text.empty()) wanted.push_back(std::move(text));
    if (wanted.empty()) wanted.emplace_back();
    SpanScore best;
    for (const std::string& truth : wanted) {
        best.f1 = std::max(best.f1, f1_of(words_of(answer), words_of(truth)));
        best.exact = std::max(best.exact, answer == truth ? 1.0 : 0.0);
    }
    return best;
}

SpanScore first_span_score(std::string_view said, std::span<const std::string> truths) {
    const std::string answer = normalized_answer(said);
    SpanScore best;
    for (const std::string& truth : truths) {
        best.f1 = std::max(best.f1, qa_f1(said, truth));
        best.exact = std::max(best.exact, answer == normalized_answer(truth) ? 1.0 : 0.0);
    }
    return best;
}

BestThreshold best_threshold(std::span<const ThresholdItem> items, std::span<const double> scores) {
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return items[a].no_answer < items[b].no_answer; });
    double sum = 0;
    for (const ThresholdItem& item : items) sum += item.has_answer ? 0 : 1;
    BestThreshold best{sum, 0};
    for (const std::size_t i : order) {
        sum += items[i].has_answer ? scores[i] : items[i].says_one ? -1 : 0;
        if (sum > best.score) best = {sum, items[i].no_answer};
    }
    best.score /= static_cast<double>(std::max<std::size_t>(items.size(), 1));
    return best;
}

}  // namespace headscope::evaluation
