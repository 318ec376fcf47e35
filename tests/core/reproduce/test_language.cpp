// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/data/generators/markov_chain.h"
#include "core/reproduce/language.h"

using namespace headscope;

namespace {

std::string text_of(const nlohmann::json& language) {
    return reproduce::language_text(JsonView(language, "paper"));
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

}  // namespace

TEST_CASE("Parts of a Markov language are dialects with tables of their own", "[reproduce]") {
    const nlohmann::json language{
        {"generator", {{"name", "markov"}, {"symbols", 4}, {"order", 1}, {"sharpness", 1.5}, {"table", 2}}},
        {"parts", 3},
        {"words", 6000}};
    const std::string text = text_of(language);
    CHECK(text == text_of(language));
    const std::vector<std::string> lines = lines_of(text);
    REQUIRE(lines.size() == 6);
    std::vector<data::MarkovChain> chains;
    for (std::uint64_t table = 2; table < 5; ++table) chains.emplace_back(4, 1, 1.5, table);
    for (std::size_t line = 0; line < lines.size(); ++line) {
        REQUIRE(lines[line].size() == 1999);  // letters with spaces between them
        std::vector<double> likelihood(3);
        for (std::size_t i = 2; i < lines[line].size(); i += 2) {
            const int before = lines[line][i - 2] - 'a', letter = lines[line][i] - 'a';
            REQUIRE((letter >= 0 && letter < 4));
            for (std::size_t one = 0; one < 3; ++one)
                likelihood[one] += std::log(chains[one].probabilities()[static_cast<std::size_t>(before * 4 + letter)]);
        }
        CHECK(std::max_element(likelihood.begin(), likelihood.end()) - likelihood.begin() ==
              static_cast<std::ptrdiff_t>(line / 2));
    }
}

TEST_CASE("Parts of a language that agrees favor an ending each", "[reproduce]") {
    const nlohmann::json language{{"generator", {{"name", "agreement"}, {"stems", 40}, {"endings", 4}}},
                                  {"parts", 4},
                                  {"words", 20000},
                                  {"others", 0.2}};
    const std::vector<std::string> lines = lines_of(text_of(language));
    std::size_t words = 0, part = 0;
    std::map<char, double> sentences;  // of this part, by ending
    for (const std::string& line : lines) {
        REQUIRE(line.back() == '.');
        std::istringstream stream(line.substr(0, line.size() - 1));
        const char ending = line[line.size() - 2];
        std::size_t own = 0;
        for (std::string word; stream >> word; ++own) REQUIRE(word.back() == ending);
        CHECK((own >= 4 && own <= 10));
        ++sentences[ending];
        words += own;
        if (words < 5000) continue;
        CHECK(words < 5010);
        double all = 0;
        for (const auto& [letter, count] : sentences) all += count;
        // One in 1 + 3 * 0.2: 0.625.
        CHECK(sentences["aoiu"[part]] / all == Approx(0.625).margin(0.07));
        sentences.clear();
        words = 0;
        ++part;
    }
    CHECK(part == 4);
}

TEST_CASE("Languages of unknown generators and options are refused", "[reproduce]") {
    CHECK_THROWS_AS(text_of({{"generator", {{"name", "mandarin"}}}, {"parts", 1}, {"words", 10}}), Error);
    CHECK_THROWS_AS(text_of({{"generator", {{"name", "markov"}, {"oder", 2}}}, {"parts", 1}, {"words", 10}}), Error);
    CHECK_THROWS_AS(text_of({{"generator", {{"name", "markov"}}}, {"parts", 2}, {"words", 1}}), Error);
}
