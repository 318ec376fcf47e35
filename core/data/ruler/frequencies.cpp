// SPDX-License-Identifier: GPL-3.0-or-later
// What stands in a text most often: RULER's common words and frequent words. Every occurrence has a random number of
// its own, by which all are put in order: a longer text is a shorter one with more words between.
#include <algorithm>
#include <numbers>
#include <set>

#include "core/data/ruler/ruler.h"

namespace headscope::data {
namespace {

struct Occurrence {
    std::uint64_t order = 0;
    const std::string* word = nullptr;
};

std::string in_order(std::vector<Occurrence> all, bool numbered) {
    std::sort(all.begin(), all.end(), [](const Occurrence& a, const Occurrence& b) { return a.order < b.order; });
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) text += ' ';
        if (numbered) text += std::to_string(i + 1) + ". ";
        text += *all[i].word;
    }
    return text;
}

void add_occurrences(std::vector<Occurrence>& all, const std::string& word, std::int64_t count, std::uint64_t key,
                     std::int64_t place) {
    Random random(key, static_cast<std::uint64_t>(place));
    for (std::int64_t i = 0; i < count; ++i) all.push_back({random.next(), &word});
}

class CommonWords final : public RulerDraw {
public:
    CommonWords(const CommonWordsShape& shape, Random& random) : shape_(shape), key_(random.next()) {
        // Single words first; where a text needs more, pairs of them.
        const auto& adjectives = ruler_adjectives();
        const auto& nouns = ruler_nouns();
        words_ = adjectives;
        words_.insert(words_.end(), nouns.begin(), nouns.end());
        for (std::size_t i = words_.size(); i > 1; --i)
            std::swap(words_[i - 1], words_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
        pairs_ = random.next();
    }
    std::int64_t most() const override {
        return std::ssize(ruler_adjectives()) * std::ssize(ruler_nouns()) / 2;  // so that pairs are soon found
    }
    RulerText text(std::int64_t units) const override {
        const auto wanted = static_cast<std::size_t>(shape_.common + units);
        std::vector<std::string> words = words_;
        std::set<std::string> known;
        Random random(pairs_, 0);
        while (words.size() < wanted) {
            std::string pair = random_word(random);
            if (known.insert(pair).second) words.push_back(std::move(pair));
        }
        std::vector<Occurrence> all;
        for (std::size_t i = 0; i < wanted; ++i) {
            const bool common = static_cast<std::int64_t>(i) < shape_.common;
            add_occurrences(all, words[i], common ? shape_.repeats : shape_.other_repeats, key_,
                            static_cast<std::int64_t>(i));
        }
        const std::string count = std::to_string(shape_.common);
        return {
            "Below is a numbered list of words. In these words, some appear more often than others. Memorize the "
            "ones that appear most often.\n" +
                in_order(std::move(all), true) + "\nQuestion: What are the " + count +
                " most common words in the above list?",
            "Answer: The top " + count + " words that appear most often in the list are:",
            {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shape_.common)}};
    }

private:
    CommonWordsShape shape_;
    std::uint64_t key_, pairs_ = 0;
    std::vector<std::string> words_;
};

class FrequentWords final : public RulerDraw {
public:
    FrequentWords(std::int64_t vocabulary, Random& random) : key_(random.next()) {
        std::set<std::string> known;
        while (std::ssize(words_) < vocabulary) {
            std::string word;
            for (int i = 0; i < 6; ++i) word += static_cast<char>('a' + random.below(std::int64_t{26}));
            if (known.insert(word).second) words_.push_back(std::move(word));
        }
        words_[0] = "...";
    }
    /// The fourth is more frequent than the fifth, or else anybody's guess.
    std::int64_t least() const override {
        std::int64_t units = 200;  // whole numbers of both differ from 74 on, and sometimes before
        while (count(4, units - 1) > count(5, units - 1)) --units;
        return units;
    }
    RulerText text(std::int64_t units) const override {
        std::vector<Occurrence> all;
        for (std::int64_t rank = 1; rank <= std::ssize(words_); ++rank)
            add_occurrences(all, words_[static_cast<std::size_t>(rank - 1)], count(rank, units), key_, rank);
        return {
            "Read the following coded text and track the frequency of each coded word. Find the three most "
            "frequently appeared coded words. " +
                in_order(std::move(all), false) +
                "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three "
                "most frequently appeared words in the above coded text?",
            "Answer: According to the coded text above, the three most frequently appeared words are:",
            {words_.begin() + 1, words_.begin() + 4}};
    }

private:
    static std::int64_t count(std::int64_t rank, std::int64_t units) {
        constexpr double zeta = std::numbers::pi * std::numbers::pi / 6;
        const auto r = static_cast<double>(rank);
        return static_cast<std::int64_t>(static_cast<double>(units) / (r * r) / zeta);
    }
    std::uint64_t key_;
    std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<RulerDraw> draw_common_words(const CommonWordsShape& shape, Random& random) {
    return std::make_unique<CommonWords>(shape, random);
}

std::unique_ptr<RulerDraw> draw_frequent_words(std::int64_t vocabulary, Random& random) {
    return std::make_unique<FrequentWords>(vocabulary, random);
}

}  // namespace headscope::data
