// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <random>

#include "core/figures/longest_common.h"
#include "core/figures/token_alignment.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

using Places = std::vector<std::int64_t>;

/// A text cut after these lengths; each piece is its text, ids count up from `id`.
store::SequenceTokens cut(const std::string& text, const std::vector<std::int64_t>& lengths, std::int32_t id) {
    store::SequenceTokens made;
    made.text = text;
    std::int64_t at = 0;
    for (const std::int64_t length : lengths) {
        made.ids.push_back(id++);
        made.offsets.push_back({at, at + length});
        made.pieces.push_back(text.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(length)));
        at += length;
    }
    return made;
}

store::SequenceTokens words(const std::vector<std::string>& pieces) {
    store::SequenceTokens made;
    for (const std::string& piece : pieces) {
        made.ids.push_back(0);
        made.offsets.push_back(
            {static_cast<std::int64_t>(made.text.size()), static_cast<std::int64_t>(made.text.size() + piece.size())});
        made.text += piece;
        made.pieces.push_back(piece);
    }
    return made;
}

void insert_first(store::SequenceTokens& tokens, const std::string& piece) {
    tokens.ids.insert(tokens.ids.begin(), 999);
    tokens.pieces.insert(tokens.pieces.begin(), piece);
    tokens.offsets.insert(tokens.offsets.begin(), {0, 0});
}

/// Length of the longest common list, by the textbook's table.
std::size_t longest(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
    for (std::size_t i = 1; i <= a.size(); ++i)
        for (std::size_t j = 1; j <= b.size(); ++j)
            best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    return best[a.size()][b.size()];
}

void check_rising(const CommonItems& common, const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    std::pair<std::int64_t, std::int64_t> last{-1, -1};
    for (const auto& [i, j] : common.pairs) {
        REQUIRE((i > last.first && j > last.second));
        REQUIRE(a.at(static_cast<std::size_t>(i)) == b.at(static_cast<std::size_t>(j)));
        last = {i, j};
    }
}

}  // namespace

TEST_CASE("The same tokens are each other", "[figures][align]") {
    const auto a = cut("abcdef", {2, 2, 2}, 0);
    const auto alignment = align_tokens(a, a);
    CHECK(alignment.by == TokenAlignment::By::identity);
    CHECK(alignment.to_b == Places{0, 1, 2});
    CHECK(alignment.to_a == Places{0, 1, 2});
}

TEST_CASE("Two tokenizers on one text are aligned by the bytes that tokens cover", "[figures][align]") {
    auto a = cut("In the beginning", {2, 4, 10}, 0);
    auto b = cut("In the beginning", {1, 1, 5, 3, 6}, 50);
    auto alignment = align_tokens(a, b);
    CHECK(alignment.by == TokenAlignment::By::place);
    CHECK(alignment.to_b == Places{0, 2, 4});
    CHECK(alignment.to_a == Places{0, 0, 1, 2, 2});

    // Inserted tokens go in pairs, what only one side has stays alone.
    insert_first(a, "<s>");
    insert_first(b, "[CLS]");
    b.ids.push_back(998);
    b.pieces.emplace_back("[SEP]");
    b.offsets.push_back({0, 0});
    alignment = align_tokens(a, b);
    CHECK(alignment.to_b == Places{0, 1, 3, 5});
    CHECK(alignment.to_a == Places{0, 1, 1, 2, 3, 3, -1});
}

TEST_CASE("Parts of one character go in step", "[figures][align]") {
    auto a = cut("x🙂", {1, 4}, 0), b = a;
    a.ids = {0, 1, 2, 3};
    a.offsets = {{0, 1}, {1, 5}, {1, 5}, {1, 5}};
    a.pieces = {"x", "\xF0\x9F", "\x99", "\x82"};
    b.ids = {0, 7, 8};
    b.offsets = {{0, 1}, {1, 5}, {1, 5}};
    b.pieces = {"x", "\xF0\x9F", "\x99\x82"};
    const auto alignment = align_tokens(a, b);
    CHECK(alignment.to_b == Places{0, 1, 2, 2});
    CHECK(alignment.to_a == Places{0, 1, 2});
}

TEST_CASE("Two texts are aligned by equal pieces", "[figures][align]") {
    const auto a = words({"God", " made", " the", " sea", "."}),
               b = words({"God", " the", " Lord", " made", " the", " land", "."});
    const auto alignment = align_tokens(a, b);
    CHECK(alignment.by == TokenAlignment::By::pieces);
    CHECK(alignment.complete);
    CHECK(alignment.to_b == Places{0, 3, 4, -1, 6});
    CHECK(alignment.to_a == Places{0, -1, -1, 1, 2, -1, 4});
    const auto none = align_tokens(a, words({}));
    CHECK(none.to_b == Places(5, -1));
    CHECK(none.to_a.empty());
}

TEST_CASE("The repeated-token probe is aligned by pieces", "[figures][align]") {
    auto a = words({"God", " made", " the"}), b = a;
    a.ids = {1, 1, 1};
    a.pieces = {"God", "God", "God"};
    a.offsets = {{0, 3}, {0, 3}, {0, 3}};
    b.ids = {1, 2, 3};
    const auto alignment = align_tokens(a, b);
    CHECK(alignment.to_b.size() == 3);
    CHECK(std::count(alignment.to_b.begin(), alignment.to_b.end(), 0) >= 1);
}

TEST_CASE("Common items are a longest list", "[figures][align]") {
    std::mt19937 random(5);
    for (int round = 0; round < 400; ++round) {
        std::vector<std::int32_t> a(random() % 30), b(random() % 30);
        const auto letters = static_cast<std::uint32_t>(1 + random() % 5);
        for (auto& one : a) one = static_cast<std::int32_t>(random() % letters);
        for (auto& one : b) one = static_cast<std::int32_t>(random() % letters);
        const CommonItems common = common_items(a, b);
        check_rising(common, a, b);
        REQUIRE(common.complete);
        REQUIRE(common.pairs.size() == longest(a, b));
    }
}

TEST_CASE("Texts with many differences are aligned around rare tokens", "[figures][align]") {
    // Every eighth token is one of its kind; the others are noise.
    std::mt19937 random(9);
    std::vector<std::int32_t> a, b;
    for (std::int32_t i = 0; i < 32'000; ++i) {
        a.push_back(i % 8 == 0 ? 1000 + i : static_cast<std::int32_t>(random() % 500));
        b.push_back(i % 8 == 0 ? 1000 + i : static_cast<std::int32_t>(random() % 500));
    }
    const CommonItems common = common_items(a, b);
    CHECK_FALSE(common.complete);
    check_rising(common, a, b);
    CHECK(common.pairs.size() >= 4000);
}

TEST_CASE("Aligning 32 000 tokens takes well under a second of processor time", "[figures][align]") {
    std::mt19937 random(3);
    std::vector<std::int32_t> a(32'000), unlike(32'000), constant(32'000, 1);
    for (auto& one : a) one = static_cast<std::int32_t>(random() % 2000);
    for (auto& one : unlike) one = static_cast<std::int32_t>(random() % 2000);
    std::vector<std::int32_t> edited = a;
    for (int i = 0; i < 900; ++i) edited[random() % edited.size()] = 5000;
    const std::clock_t began = std::clock();
    CHECK(common_items(a, edited).pairs.size() > 31'000);
    CHECK(common_items(a, unlike).pairs.size() < 32'000);
    CHECK_FALSE(common_items(a, constant).complete);
    const double took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    CHECK(took < 3.0);  // three of them, and a processor that others share
}

TEST_CASE("Places between tokens of one text lie between the partners on the other", "[figures][alignment]") {
    // Tokens 1 and 2 are 3 and 4 of seven; 0 and 3 have no partner.
    const auto places = edge_places({-1, 3, 4, -1}, 7);
    CHECK(places == std::vector<double>{0, 3, 4, 5, 7});
    CHECK(place_at(places, 1.5) == 3.5);
    CHECK(place_at(places, 0.5) == 1.5);
    CHECK(place_at(places, -2) == 0);
    CHECK(place_at(places, 9) == 7);
}
