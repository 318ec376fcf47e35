// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/sample_hash.h"
#include "tests/core/figures/figure_files.h"

using namespace headscope;
using figures::HeatMap;
using figures::make_figure;
using tests::refusal;

namespace {

/// A text of which "ab" comes twice, with bits by hand.
store::SequenceTokens hashed_text(const std::string& first, const std::string& second) {
    store::SequenceTokens tokens;
    tokens.ids = {0, 5, 5, 5, 2};
    tokens.pieces = {"<s>", "ab", "c", "ab", "</s>"};
    tokens.offsets = {{0, 0}, {0, 2}, {3, 4}, {5, 7}, {0, 0}};
    tokens.text = "ab c ab";
    tokens.hashes = {"", first, second, first, ""};
    return tokens;
}

}  // namespace

TEST_CASE("Bits of words, how alike they are, and their n-grams and codes", "[figures][hash]") {
    const tests::FigureFiles folder;
    // 12 bits: 1011 0000 1111 and 1011 0000 0000, of which four differ.
    const auto one = folder.analysis("one", {}, hashed_text("b0f", "b00"));
    const auto figure = make_figure("hash", std::vector{one}, {});
    REQUIRE(figure.panels.size() == 2);
    const auto& bits = std::get<HeatMap>(figure.panels[0].content);
    CHECK(bits.rows == 2);
    CHECK(bits.columns == 12);
    CHECK(bits.values == std::vector<float>{1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
    CHECK(figure.panels[0].y.cell_labels == std::vector<std::string>{"ab", "c"});
    const auto& cosines = std::get<HeatMap>(figure.panels[1].content);
    const float alike = 1.0F - 2 * 4 / 12.0F;
    REQUIRE(cosines.values.size() == 4);
    CHECK(cosines.values[0] == 1);
    CHECK(cosines.values[1] == Approx(alike));
    CHECK(cosines.values[2] == cosines.values[1]);
    REQUIRE(figure.text_table);
    REQUIRE(figure.text_table->rows.size() == 2);
    // 1011000011 and 11 in groups of 10.
    CHECK(figure.text_table->rows[0][3] == "b0f");
    CHECK(figure.text_table->rows[0][4] == "707 3");
    CHECK(figure.text_table->rows[0][1] == "a b ab");
    CHECK(tests::lines(figures::figure_csv(figure)) == 5);
    CHECK(figures::figure_csv(figure).find("ab,c,b0f,b00,4,") != std::string::npos);

    auto given = hashed_text("b0f", "b00");  // bits in the place of a word
    given.pieces[2] = "#b00";
    const auto bare = make_figure("hash", std::vector{folder.analysis("given", {}, given)}, {});
    CHECK(bare.text_table->rows[1][1] == "–");

    const auto other = folder.analysis("other", {}, hashed_text("b0", "4f"));
    CHECK(make_figure("hash", std::vector{one, other}, {}).panels.size() == 4);
}

TEST_CASE("Texts without bits, and bits of two lengths, are refused", "[figures][hash]") {
    const tests::FigureFiles folder;
    CHECK(refusal("hash", {folder.analysis("plain", {})}).find("hash embedding") != std::string::npos);
    const auto uneven = folder.analysis("uneven", {}, hashed_text("b0f", "b0"));
    CHECK_THROWS_AS(make_figure("hash", std::vector{uneven}, {}), Error);
}

TEST_CASE("Words that are typed in, under MD5 and LSH", "[figures][hash]") {
    using tokenizer::WordHashKind;
    figures::FigureInputs inputs;
    inputs.hashes = {{"", tokenizer::sample_hash(WordHashKind::md5)}, {"", tokenizer::sample_hash(WordHashKind::lsh)}};
    figures::FigureOptions options;
    options.words = "Hello playing played, hello";
    const auto figure = make_figure("hash", inputs, options);
    REQUIRE(figure.panels.size() == 4);
    CHECK(figure.panels[0].title == "MD5, bits");
    CHECK(figure.panels[3].title == "LSH, cosine similarity");
    CHECK(figure.panels[0].y.cell_labels == std::vector<std::string>{"hello", "playing", "played", ","});
    CHECK(std::get<HeatMap>(figure.panels[0].content).columns == 128);
    // HMAC-MD5 of "hello" with the key "en" and its codes, as the specification prints them.
    REQUIRE(figure.text_table->rows.size() == 8);
    CHECK(figure.text_table->rows[0][3] == "1dec56025892c637efb2601c8e1a3ab4");
    CHECK(figure.text_table->rows[0][4] == "119 709 384 600 587 99 507 946 384 456 902 570 180");
    // Words that share n-grams are alike under LSH alone.
    const auto cosine = [&](std::size_t panel) {
        return std::get<HeatMap>(figure.panels[panel].content).values[4 + 2];
    };
    CHECK(cosine(3) > 0.4F);
    CHECK(std::abs(cosine(1)) < 0.3F);  // of 128 fair bits: 3.4 standard deviations
    CHECK(tests::lines(figures::figure_csv(figure)) == 1 + 2 * 16);

    inputs.hashes = {{"a model", tokenizer::sample_hash(WordHashKind::lsh)}};
    CHECK(make_figure("hash", inputs, options).panels[0].title == "a model, LSH, bits");
    const tests::FigureFiles folder;
    CHECK(refusal("hash", {folder.analysis("one", {}, hashed_text("b0f", "b00"))}, options).find("--words") !=
          std::string::npos);
    options.words = " \t";
    CHECK_THROWS_AS(make_figure("hash", inputs, options), Error);
}
