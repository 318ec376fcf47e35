// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/ruler/ruler.h"

#include <sstream>

namespace headscope::data {
namespace {

// datasets/words/*.txt, by CMakeLists.txt
#include "words.inc"

std::vector<std::string> words_of(const char* text) {
    std::istringstream lines(text);
    std::vector<std::string> words;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream row(line);
        for (std::string word; row >> word;) words.push_back(word);
    }
    return words;
}

}  // namespace

const std::vector<std::string>& ruler_adjectives() {
    static const std::vector<std::string> words = words_of(adjectives);
    return words;
}

const std::vector<std::string>& ruler_nouns() {
    static const std::vector<std::string> words = words_of(nouns);
    return words;
}

std::string random_word(Random& random) {
    const auto of = [&](const std::vector<std::string>& words) {
        return words[static_cast<std::size_t>(random.below(std::ssize(words)))];
    };
    const std::string adjective = of(ruler_adjectives());
    return adjective + "-" + of(ruler_nouns());
}

std::string ruler_list(const std::vector<std::string>& items) {
    std::string list;
    for (std::size_t i = 0; i < items.size(); ++i)
        list += (i == 0 ? "" : i + 1 < items.size() ? ", " : ", and ") + items[i];
    return list;
}

}  // namespace headscope::data
