// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/metrics/long_answers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/evaluation/metrics/answer_spans.h"
#include "core/evaluation/metrics/python_text.h"
#include "core/tokenizer/template/python_text.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::evaluation {
namespace {

using Words = std::vector<std::string>;

/// str.split(separator) of one character.
Words parts_of(std::string_view text, char separator) {
    Words parts;
    for (std::size_t begin = 0;;) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        if (end == text.size()) return parts;
        begin = end + 1;
    }
}

/// A piece of white space is a sentence of one empty word.
std::vector<Words> sentences_of(std::string_view text) {
    std::vector<Words> sentences;
    for (const std::string& piece : parts_of(text, '.')) {
        if (piece.empty()) continue;
        Words words = tokenizer::chat::split(piece, nullptr, -1, false);
        if (words.empty()) words.emplace_back();
        sentences.push_back(std::move(words));
    }
    return sentences;
}

std::set<std::string> words_of(const std::vector<Words>& sentences) {
    std::set<std::string> words;
    for (const Words& sentence : sentences) words.insert(sentence.begin(), sentence.end());
    return words;
}

/// Adds the words of a longest common subsequence, as the package walks its table back.
void add_common(const Words& truth, const Words& said, std::set<std::string>& common) {
    const std::size_t n = truth.size(), m = said.size();
    std::vector<std::size_t> table((n + 1) * (m + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * (m + 1) + j]; };
    for (std::size_t i = 1; i <= n; ++i)
        for (std::size_t j = 1; j <= m; ++j)
            at(i, j) = truth[i - 1] == said[j - 1] ? at(i - 1, j - 1) + 1 : std::max(at(i - 1, j), at(i, j - 1));
    for (std::size_t i = n, j = m; i > 0 && j > 0;) {
        if (truth[i - 1] == said[j - 1]) {
            common.insert(truth[i - 1]);
            --i;
            --j;
        } else if (at(i - 1, j) > at(i, j - 1)) {
            --i;
        } else {
            --j;
        }
    }
}

std::u32string points_of(std::string_view text) {
    std::u32string points;
    for (std::size_t at = 0; at < text.size();) {
        const auto [point, length] = tokenizer::decode_utf8(text, at);
        points += point;
        at += length;
    }
    return points;
}

/// difflib.SequenceMatcher(None, a, b): characters that blocks of a and b share.
class Matcher {
public:
    Matcher(std::u32string a, std::u32string b) : a_(std::move(a)), b_(std::move(b)) {
        constexpr std::size_t long_text = 200;
        for (std::size_t j = 0; j < b_.size(); ++j) places_[b_[j]].push_back(j);
        if (b_.size() < long_text) return;
        const std::size_t most = b_.size() / 100 + 1;
        std::erase_if(places_, [most](const auto& one) { return one.second.size() > most; });
    }

    std::size_t shared() const {
        std::size_t sum = 0;
        std::vector<std::array<std::size_t, 4>> left{{0, a_.size(), 0, b_.size()}};
        while (!left.empty()) {
            const auto [a_begin, a_end, b_begin, b_end] = left.back();
            left.pop_back();
            const Block block = longest(a_begin, a_end, b_begin, b_end);
            if (block.size == 0) continue;
            sum += block.size;
            left.push_back({a_begin, block.a, b_begin, block.b});
            left.push_back({block.a + block.size, a_end, block.b + block.size, b_end});
        }
        return sum;
    }

private:
    struct Block {
        std::size_t a, b, size;
    };

    Block longest(std::size_t a_begin, std::size_t a_end, std::size_t b_begin, std::size_t b_end) const {
        Block best{a_begin, b_begin, 0};
        std::unordered_map<std::size_t, std::size_t> before;  // by the place in b: characters that match up to it
        for (std::size_t i = a_begin; i < a_end; ++i) {
            std::unordered_map<std::size_t, std::size_t> now;
            if (const auto found = places_.find(a_[i]); found != places_.end()) {
                for (const std::size_t j : found->second) {
                    if (j < b_begin) continue;
                    if (j >= b_end) break;
                    const auto last = j > 0 ? before.find(j - 1) : before.end();
                    const std::size_t size = (last == before.end() ? 0 : last->second) + 1;
                    now[j] = size;
                    if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
                }
            }
            before = std::move(now);
        }
        while (best.a > a_begin && best.b > b_begin && a_[best.a - 1] == b_[best.b - 1])
            best = {best.a - 1, best.b - 1, best.size + 1};
        while (best.a + best.size < a_end && best.b + best.size < b_end &&
               a_[best.a + best.size] == b_[best.b + best.size])
            ++best.size;
        return best;
    }

    std::u32string a_, b_;
    std::map<char32_t, std::vector<std::size_t>> places_;  ///< of each character of b that may start a block
};

std::string first_line_of_code(std::string_view said, bool blank_too) {
    if (blank_too) said.remove_prefix(std::min(said.find_first_not_of('\n'), said.size()));
    for (const std::string& line : parts_of(said, '\n'))
        if ((blank_too || !trimmed(line).empty()) && line.find_first_of("`#") == std::string::npos &&
            line.find("//") == std::string::npos)
            return line;
    return {};
}

}  // namespace

double qa_f1(std::string_view said, std::string_view truth) {
    const std::string truths[] = {std::string(truth)};
    if (normalized_answer(said).empty() || normalized_answer(truth).empty()) return 0;
    return span_score(said, truths).f1;
}

double rouge_l(std::string_view said, std::string_view truth) {
    const std::vector<Words> ours = sentences_of(said), theirs = sentences_of(truth);
    if (ours.empty() || theirs.empty()) return 0;
    std::set<std::string> common;
    for (const Words& sentence : theirs)
        for (const Words& other : ours) add_common(sentence, other, common);
    const auto shared = static_cast<double>(common.size());
    const double precision = shared / static_cast<double>(words_of(ours).size());
    const double recall = shared / static_cast<double>(words_of(theirs).size());
    return 2 * precision * recall / (precision + recall + 1e-8);
}

double class_in_text(std::string_view said, std::string_view truth, std::span<const std::string> classes) {
    std::vector<std::string> found;
    for (const std::string& one : classes)
        if (said.find(one) != std::string_view::npos) found.push_back(one);
    for (std::size_t i = 0; i < found.size(); ++i)
        if (truth.find(found[i]) != std::string_view::npos && found[i] != truth)
            found.erase(std::find(found.begin(), found.end(), found[i]));
    const bool there = std::find(found.begin(), found.end(), truth) != found.end();
    return there ? 1.0 / static_cast<double>(found.size()) : 0;
}

double line_similarity(std::string_view said, std::string_view truth, bool blank_too) {
    const std::string line = first_line_of_code(said, blank_too);
    if (line == truth) return 1;
    if (line.empty() || truth.empty()) return 0;
    std::u32string a = points_of(line), b = points_of(truth);
    const auto both = static_cast<double>(a.size() + b.size());
    const double ratio = 2.0 * static_cast<double>(Matcher(std::move(a), std::move(b)).shared()) / both;
    return std::nearbyint(100 * ratio) / 100;
}

}  // namespace headscope::evaluation
