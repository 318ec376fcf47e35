// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/base/progress.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/tokenizer/json_parts.h"

using namespace headscope;
using namespace headscope::test;
using tokenizer::Tokenizer;
using Ids = std::vector<std::int32_t>;

namespace {

// Byte-pair encoding as the paper puts it: again and again the pair of lowest rank, the leftmost of equals.
std::vector<std::string> merge_slowly(const std::string& word,
                                      const std::vector<std::pair<std::string, std::string>>& merges) {
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    for (;;) {
        std::size_t best = merges.size();
        std::size_t place = 0;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
            for (std::size_t rank = 0; rank < best; ++rank) {
                if (merges[rank] != std::pair(parts[i], parts[i + 1])) continue;
                best = rank;
                place = i;
            }
        }
        if (best == merges.size()) return parts;
        parts[place] += parts[place + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
}

}  // namespace

TEST_CASE("Merges go by rank, then from the left", "[tokenizer][bpe]") {
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
        // A random vocabulary over three letters, in which each piece is made by one merge.
        std::vector<std::string> pieces = {"a", "b", "c"};
        std::vector<std::pair<std::string, std::string>> merges;
        while (merges.size() < 12) {
            const auto pick = [&] {
                return pieces[std::uniform_int_distribution<std::size_t>(0, pieces.size() - 1)(random)];
            };
            const std::pair pair(pick(), pick());
            const std::string made = pair.first + pair.second;
            if (std::find(pieces.begin(), pieces.end(), made) != pieces.end()) continue;
            pieces.push_back(made);
            merges.push_back(pair);
        }
        nlohmann::json model = {{"type", "BPE"}, {"merges", nlohmann::json::array()}};
        for (std::size_t i = 0; i < pieces.size(); ++i) model["vocab"][pieces[i]] = i;
        for (const auto& [left, right] : merges) {
            if (round % 2 == 0) {
                model["merges"].push_back(left + " " + right);
            } else {
                model["merges"].push_back({left, right});
            }
        }
        JsonParts parts;
        parts.model = model.dump();
        const auto tokenizer = parts.make();
        for (int i = 0; i < 100; ++i) {
            std::string word(std::uniform_int_distribution<std::size_t>(1, 60)(random), 'a');
            for (char& c : word) c = static_cast<char>('a' + std::uniform_int_distribution<int>(0, 2)(random));
            INFO(model.dump() << " " << word);
            const auto encoding = tokenizer->encode(word);
            REQUIRE(tokenizer->pieces(encoding) == merge_slowly(word, merges));
            REQUIRE(encoding.offsets.back()[1] == static_cast<std::int64_t>(word.size()));
        }
    }
}

TEST_CASE("Merges may come with carriage returns, a version line, and without a type", "[tokenizer][bpe]") {
    JsonParts parts;
    parts.model = R"({"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2\r", "a b\r"]})";
    REQUIRE(parts.make()->encode("abab").ids == Ids{2, 2});
}

TEST_CASE("Unknown characters vanish, become one token each, or one for all", "[tokenizer][bpe]") {
    JsonParts parts;
    const std::string vocabulary = R"("vocab": {"a": 0, "<unk>": 1, "<0xC3>": 2, "<0xA9>": 3}, "merges": [])";
    parts.model = "{" + vocabulary + "}";
    REQUIRE(parts.make()->encode("axéa").ids == Ids{0, 0});
    parts.model = R"({"unk_token": "<unk>", )" + vocabulary + "}";
    REQUIRE(parts.make()->encode("axéa").ids == Ids{0, 1, 1, 0});
    parts.model = R"({"unk_token": "<unk>", "fuse_unk": true, )" + vocabulary + "}";
    const auto fused = parts.make()->encode("axéa");
    REQUIRE(fused.ids == Ids{0, 1, 0});
    REQUIRE(fused.offsets[1] == std::array<std::int64_t, 2>{1, 4});
    parts.model = R"({"unk_token": "<unk>", "byte_fallback": true, )" + vocabulary + "}";
    const auto bytes = parts.make()->encode("éaü");  // ü has a byte without piece: unknown as a whole
    REQUIRE(bytes.ids == Ids{2, 3, 0, 1});
    REQUIRE(bytes.offsets[0] ==
            std::array<std::int64_t, 2>{0, 2});  // a part of a character has the character's offsets
}

TEST_CASE("An end of word that falls back to bytes is more tokens than there is text", "[tokenizer][bpe]") {
    JsonParts parts;
    std::string vocabulary = R"("a": 0)";
    const auto id_of = [](char letter) { return 1 + static_cast<std::int32_t>(letter); };
    for (int byte = 0; byte < 128; ++byte) {
        char name[8];
        std::snprintf(name, sizeof name, "<0x%02X>", byte);
        vocabulary += ", \"" + std::string(name) + "\": " + std::to_string(1 + byte);
    }
    parts.model = R"({"type": "BPE", "byte_fallback": true, "end_of_word_suffix": "</w>", "merges": [], "vocab": {)" +
                  vocabulary + "}}";
    parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
    const auto tokenizer = parts.make();
    Ids expected{0};
    for (const char letter : std::string("b</w>")) expected.push_back(id_of(letter));
    for (int time = 0; time < 2; ++time) {  // the second may come from the words that are remembered
        const auto encoding = tokenizer->encode("ab");
        REQUIRE(encoding.ids == expected);
        for (const auto& [begin, end] : encoding.offsets) REQUIRE((begin < end && end <= 2));
    }
    // 100 000 words, each with five bytes more than its own.
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "b ";
    REQUIRE(tokenizer->encode(text).ids.size() == 500'000);
    REQUIRE(tokenizer->encode(text).offsets.back() == std::array<std::int64_t, 2>{199'998, 199'999});
}

TEST_CASE("ignore_merges takes words that are pieces whole", "[tokenizer][bpe]") {
    JsonParts parts;
    parts.model = R"({"ignore_merges": true, "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5},
                      "merges": ["b c"]})";
    parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
    REQUIRE(parts.make()->encode("abc abca").ids == Ids{4, 0, 5, 0});
}

TEST_CASE("A word of millions of characters is no square", "[tokenizer][bpe]") {
    JsonParts parts;  // "a" and "b" join: nothing parts the word
    parts.model = R"({"vocab": {"a": 0, "b": 1, "aa": 2, "bb": 3, "ab": 4, "ba": 5, "aaaa": 6},
                      "merges": ["a a", "b b", "a b", "b a", "aa aa"]})";
    std::mt19937 random(5);
    std::string word(1'000'000, 'a');
    for (char& c : word) {
        if (random() % 3 == 0) c = 'b';
    }
    const auto tokenizer = parts.make();
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(tokenizer->encode(word).ids.size() > 100'000);
    REQUIRE(tokenizer->encode(std::string(1'000'000, 'a')).ids == Ids(250'000, 6));
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));  // a square would take hours
}

TEST_CASE("Encoding can be stopped", "[tokenizer][bpe]") {
    JsonParts parts;
    parts.model = R"({"vocab": {"a": 0, "aa": 1}, "merges": ["a a"]})";
    const auto tokenizer = parts.make();
    Cancellation cancelled;
    cancelled.request();
    REQUIRE_THROWS_AS(tokenizer->encode(std::string(100'000, 'a'), true, &cancelled), Stopped);
    REQUIRE_THROWS_AS(Tokenizer::bytes()->encode("a", true, &cancelled), Stopped);
    REQUIRE(tokenizer->encode("aaa").ids == Ids{1, 0});
}

TEST_CASE("Several models on several threads keep their words apart", "[tokenizer][bpe]") {
    JsonParts first;
    JsonParts second;
    second.model = R"({"vocab": {"a": 5, "b": 6}, "merges": []})";
    const auto one = first.make();
    const auto two = second.make();
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < 200; ++k) {
                if (one->encode("ab").ids != Ids{2}) ++wrong;
                if (two->encode("ab").ids != Ids{5, 6}) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    REQUIRE(wrong == 0);
}
