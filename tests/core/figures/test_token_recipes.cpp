// SPDX-License-Identifier: GPL-3.0-or-later
// Figures made of tokens: the coloured text, lines between tokens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/figures/token_chips.h"
#include "core/figures/word_units.h"
#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

store::SequenceTokens tokens_of(const std::string& text, const std::vector<std::array<std::int64_t, 2>>& offsets) {
    store::SequenceTokens tokens;
    tokens.text = text;
    tokens.offsets = offsets;
    for (const auto& [begin, end] : offsets) {
        tokens.ids.push_back(static_cast<std::int32_t>(tokens.ids.size()));
        tokens.pieces.push_back(
            end > begin ? text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)) : "<s>");
    }
    return tokens;
}

const TextBlock& block(const FigureData& figure) {
    return std::get<TextBlock>(figure.panels.at(0).content);
}

std::vector<double> numbers(const FigureData& figure, const std::string& name) {
    for (const auto& column : figure.table().columns)
        if (column.name == name) return std::get<std::vector<double>>(column.values);
    return {};
}

}  // namespace

TEST_CASE("Bytes of one character are shown together, what no token has stays between", "[figures][chips]") {
    // "a 月" as byte pieces that all name the whole character, then bytes of their own, then words with gaps.
    const auto whole = token_groups(tokens_of("a 月!", {{0, 0}, {0, 1}, {1, 2}, {2, 5}, {2, 5}, {2, 5}, {5, 6}}), 0, 7);
    REQUIRE(whole.size() == 5);
    CHECK(whole[0].special);
    CHECK(whole[0].text == "<s>");
    CHECK(whole[2].text == "␣");
    CHECK(whole[3].text == "月");
    CHECK(whole[3].first == 3);
    CHECK(whole[3].end == 6);
    CHECK(!whole[3].special);
    const auto bytes = token_groups(tokens_of("月b", {{0, 1}, {1, 2}, {2, 3}, {3, 4}}), 0, 4);
    REQUIRE(bytes.size() == 2);
    CHECK(bytes[0].text == "月");
    CHECK(bytes[1].text == "b");
    const auto gaps = token_groups(tokens_of("one two\n\nthree\n", {{0, 3}, {4, 7}, {9, 14}, {14, 15}}), 0, 4);
    REQUIRE(gaps.size() == 4);
    CHECK(!gaps[0].space_before);
    CHECK(gaps[1].space_before);
    CHECK(gaps[1].breaks_before == 0);
    CHECK(gaps[2].breaks_before == 2);
    CHECK(gaps[3].text == "↵");
    CHECK(gaps[3].breaks_after == 1);
    // A part has no gap before it; a character that is cut shows its bytes.
    const auto part = token_groups(tokens_of("one two", {{0, 3}, {4, 7}}), 1, 2);
    CHECK(!part[0].space_before);
    const auto cut = token_groups(tokens_of("月b", {{0, 1}, {1, 2}, {2, 3}, {3, 4}}), 2, 4);
    CHECK(cut[0].text == "‹x88›");
    // Without a text nothing is special, for nothing has a place.
    CHECK(!token_groups(tokens_of("", {{0, 0}, {0, 0}}), 0, 2)[1].special);
    CHECK(token_groups(tokens_of(" the  end", {{0, 4}, {4, 9}}), 0, 2)[0].text == " the");
    CHECK(token_groups(tokens_of(" the  end", {{0, 4}, {4, 9}}), 0, 2)[1].text == "␣␣end");
}

TEST_CASE("Words are runs of pieces without white space between them", "[figures][words]") {
    using Begins = std::vector<std::int64_t>;
    // Spaces of no piece, as WordPiece leaves them; inserted tokens are units of their own.
    const auto bert =
        word_units(tokens_of("play ing, now", {{0, 0}, {0, 4}, {5, 7}, {7, 8}, {8, 9}, {10, 13}, {0, 0}}));
    CHECK(bert.begins == Begins{0, 1, 2, 5, 6, 7});
    CHECK(bert.tokens.pieces == std::vector<std::string>{"<s>", "play", "ing,", "now", "<s>"});
    CHECK(bert.tokens.offsets[2] == std::array<std::int64_t, 2>{5, 9});
    // Spaces within pieces, white space alone, a piece over a gap.
    CHECK(word_units(tokens_of("ab cd\n\nef", {{0, 1}, {1, 2}, {2, 4}, {4, 5}, {5, 7}, {7, 9}})).begins ==
          Begins{0, 2, 4, 5, 6});
    CHECK(word_units(tokens_of("ab cd", {{0, 1}, {1, 4}, {4, 5}})).begins == Begins{0, 3});
    CHECK(word_units(tokens_of("a\u3000b\u00A0c", {{0, 1}, {4, 5}, {5, 8}})).begins == Begins{0, 1, 2, 3});
    // Bytes of one character, and the repeated-token probe, whose tokens all have the first one's place.
    auto bytes = tokens_of("月b", {{0, 3}, {0, 3}, {0, 3}, {3, 4}});
    CHECK(word_units(bytes).begins == Begins{0, 4});
    auto repeated = tokens_of("one", {{0, 3}, {0, 3}, {0, 3}});
    repeated.ids = {7, 7, 7};
    CHECK(word_units(repeated).begins == Begins{0, 1, 2, 3});
    // Without a text every token is one.
    CHECK(word_units(tokens_of("", {{0, 0}, {0, 0}})).begins == Begins{0, 1, 2});
    // A pair's texts are two lines.
    auto pair = tokens_of("a\nb", {{0, 1}, {2, 3}});
    pair.regions = {1, 2};
    CHECK(word_units(pair).tokens.regions == std::vector<std::int32_t>{1, 2});
}

TEST_CASE("Figures of words: rows averaged, columns summed", "[figures][words]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    auto tokens = tokens_of("ab cd e", {{0, 0}, {0, 1}, {1, 2}, {3, 4}, {4, 5}, {6, 7}});
    const std::vector<std::shared_ptr<store::AnalysisFile>> files{folder.analysis("a", wish, tokens)};
    FigureOptions options;
    options.layer = 1;
    options.head = 0;
    const auto pieces = make_figure("attention", files, options);
    options.units = Units::words;
    const auto words = make_figure("attention", files, options);
    CHECK(noted(words, "Whole words: rows of their pieces averaged, columns summed."));
    const auto& all = std::get<HeatMap>(pieces.panels.at(0).content);
    const auto& map = std::get<HeatMap>(words.panels.at(0).content);
    REQUIRE(map.rows == 4);
    REQUIRE(map.columns == 4);
    CHECK(words.panels[0].x.label == "key word");
    const std::vector<std::size_t> begins{0, 1, 3, 5, 6};
    for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t c = 0; c < 4; ++c) {
            double sum = 0;
            for (std::size_t i = begins[r]; i < begins[r + 1]; ++i) {
                for (std::size_t j = begins[c]; j < begins[c + 1]; ++j) {
                    const float weight = all.values[i * 6 + j];
                    sum += std::isnan(weight) ? 0.0 : static_cast<double>(weight);
                }
            }
            const float found = map.values[r * 4 + c];
            CHECK((std::isnan(found) ? 0.0 : static_cast<double>(found)) ==
                  Approx(sum / static_cast<double>(begins[r + 1] - begins[r])).margin(1e-6));
        }
    }
    const auto links = std::get<Links>(make_figure("lines", files, options).panels.at(0).content);
    CHECK(links.left == std::vector<std::string>{"<s>", "ab", "cd", "e"});
    options.query = 2;
    const auto coloured = make_figure("text", files, options);
    CHECK(coloured.title.find("“cd”") != std::string::npos);
    REQUIRE(block(coloured).chips.size() == 4);
    for (std::size_t c = 0; c < 3; ++c)
        CHECK(block(coloured).chips[c].values.at(0) == Approx(map.values[2 * 4 + c]).margin(1e-6));
    options.query.reset();
    options.values = MapValues::logits;
    CHECK(refusal("attention", files, options).find("words have no others") != std::string::npos);
}

TEST_CASE("The text by what a token looks at: that query's weights", "[figures][text]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 1;
    options.head = 2;
    const auto map = make_figure("attention", std::vector{file}, options);
    const auto& cells = std::get<HeatMap>(map.panels[0].content);
    options.query = 15;
    const auto figure = make_figure("text", std::vector{file}, options);
    CHECK(figure.title.starts_with("What token 15 “"));
    const auto weights = numbers(figure, "weight");
    REQUIRE(weights.size() == 24);
    for (std::size_t j = 0; j < 24; ++j) {
        INFO(j);
        CHECK(std::isnan(weights[j]) == (j > 15));
        if (j <= 15) CHECK(weights[j] == Approx(cells.values[15 * 24 + j]).epsilon(1e-6));
    }
    std::size_t tokens = 0, stressed = 0;
    for (const auto& chip : block(figure).chips) {
        tokens += chip.values.size();
        stressed += chip.stressed ? 1 : 0;
    }
    CHECK(tokens == 24);
    CHECK(stressed == 1);

    // A layer's mean, and the mean of all.
    options.head.reset();
    double by_hand = 0;
    for (std::int64_t h = 0; h < 4; ++h) {
        FigureOptions one = options;
        one.head = h;
        by_hand += numbers(make_figure("text", std::vector{file}, one), "weight")[3] / 4;
    }
    CHECK(numbers(make_figure("text", std::vector{file}, options), "weight")[3] == Approx(by_hand).epsilon(1e-9));
    options.layer.reset();
    CHECK(make_figure("text", std::vector{file}, options).title.find("every layer") != std::string::npos);
    options.query = 24;
    CHECK(refusal("text", {file}, options).find("[--query] expected 0 to 23") != std::string::npos);
    CHECK(refusal("text", {folder.analysis("b", {})}, options).find("--record maps") != std::string::npos);
    options.query.reset();
    options.colour = TextColour::weights;
    CHECK(refusal("text", {file}, options).find("--query N") != std::string::npos);
}

TEST_CASE("The text by who looks at a token: that key's column", "[figures][text]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 1;
    options.head = 2;
    const auto map = make_figure("attention", std::vector{file}, options);
    const auto& cells = std::get<HeatMap>(map.panels[0].content);
    options.key = 9;
    const auto figure = make_figure("text", std::vector{file}, options);
    CHECK(figure.title.starts_with("Who looks at token 9 “"));
    const auto weights = numbers(figure, "weight");
    REQUIRE(weights.size() == 24);
    float most = 0;
    for (std::size_t i = 0; i < 24; ++i) {
        INFO(i);
        CHECK(std::isnan(weights[i]) == (i < 9));
        if (i < 9) continue;
        CHECK(weights[i] == Approx(cells.values[i * 24 + 9]).epsilon(1e-6));
        most = std::max(most, cells.values[i * 24 + 9]);
    }
    CHECK(block(figure).colours.maximum == Approx(most));
    options.range = ColourRange::one;
    CHECK(block(make_figure("text", std::vector{file}, options)).colours.maximum == 1);
    // A layer's mean, and the mean of all.
    options.head.reset();
    double by_hand = 0;
    for (std::int64_t h = 0; h < 4; ++h) {
        FigureOptions one = options;
        one.head = h;
        by_hand += numbers(make_figure("text", std::vector{file}, one), "weight")[20] / 4;
    }
    CHECK(numbers(make_figure("text", std::vector{file}, options), "weight")[20] == Approx(by_hand).epsilon(1e-9));
    options.layer.reset();
    CHECK(make_figure("text", std::vector{file}, options).title.find("every layer") != std::string::npos);
    options.key = 24;
    CHECK(refusal("text", {file}, options).find("[--key] expected 0 to 23") != std::string::npos);
    options.key.reset();
    options.colour = TextColour::lookers;
    CHECK(refusal("text", {file}, options).find("--key N") != std::string::npos);
    options.colour = TextColour::loss;
    CHECK(refusal("text", {file}, options).find("--range") != std::string::npos);
}

TEST_CASE("Column mass by position has the analyses' own values, a curve a model", "[figures][column-mass]") {
    const FigureFiles folder;
    SyntheticAnalysis made;
    made.lengths = {24, 17};
    const auto a = folder.analysis("a", made);
    made.seed = 5;
    made.layers = 2;
    made.model_name = "other";
    const auto b = folder.analysis("b", made);
    // One head of one layer: what the file holds.
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    options.sequence = 1;
    const auto one = make_figure("column-mass", std::vector{a, b}, options);
    const std::string csv = figure_csv(one);
    CHECK(csv.starts_with("model,position,mass\r\nsynthetic,0,"));
    const auto mass = numbers(one, "mass");
    REQUIRE(mass.size() == 34);
    for (std::size_t f = 0; f < 2; ++f) {
        const auto stored = (f == 0 ? a : b)->column_mass(1, 1);
        const auto room = static_cast<std::size_t>(stored.shape.back());
        for (std::size_t j = 0; j < 17; ++j) CHECK(mass[f * 17 + j] == stored.data[3 * room + j]);
    }
    const auto& curves = std::get<Curves>(one.panels.at(0).content).curves;
    REQUIRE(curves.size() == 2);
    CHECK(curves[1].name == "other");
    CHECK(curves[0].x.front() == 1);
    CHECK(one.panels[0].x.scale == ScaleKind::logarithmic);

    // Means over heads, layers and sequences; the last keys are those of the longer text alone.
    FigureOptions all;
    all.all_sequences = true;
    const auto mean = numbers(make_figure("column-mass", std::vector{b}, all), "mass");
    REQUIRE(mean.size() == 24);
    for (const std::size_t j : {std::size_t{0}, std::size_t{16}, std::size_t{20}}) {
        double sum = 0;
        int count = 0;
        for (const std::int64_t s : {0, 1}) {
            const std::size_t length = s == 0 ? 24 : 17;
            if (j >= length) continue;
            for (const std::int64_t site : {0, 1}) {
                const auto stored = b->column_mass(s, site);
                const auto room = static_cast<std::size_t>(stored.shape.back());
                for (std::size_t h = 0; h < 4; ++h, ++count) sum += stored.data[h * room + j];
            }
        }
        CHECK(mean[j] == Approx(sum / count).epsilon(1e-12));
    }
    options.head = 4;
    CHECK(refusal("column-mass", {a}, options).find("[--head] expected 0 to 3") != std::string::npos);
}

TEST_CASE("The text by who is looked at and by loss, a part of it, by rank", "[figures][text]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 2;
    options.head = 1;
    const auto mass = make_figure("text", std::vector{file}, options);
    const auto stored = file->column_mass(0, 2);
    for (std::size_t j = 0; j < 24; ++j) CHECK(numbers(mass, "column_mass")[j] == Approx(stored.data[24 + j]));
    CHECK(noted(mass, "Column mass"));
    CHECK(block(mass).colours.scale == ScaleKind::square_root);

    options.from_key = 3;
    options.to_key = 9;
    options.scale = CellScale::row_rank;
    const auto part = make_figure("text", std::vector{file}, options);
    CHECK(numbers(part, "rank").size() == 6);
    CHECK(noted(part, "Tokens 3 to 8 of 24"));
    auto ranks = numbers(part, "rank");
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t i = 0; i < 6; ++i) CHECK(ranks[i] == Approx(static_cast<double>(i) / 5));

    FigureOptions by_loss;
    by_loss.colour = TextColour::loss;
    const auto loss = make_figure("text", std::vector{file}, by_loss);
    CHECK(std::isnan(numbers(loss, "loss")[0]));
    // The loss stored at the token before.
    CHECK(numbers(loss, "loss")[1] == Approx(file->loss(0).data[0]));
    CHECK(block(loss).colours.label == "loss (nats)");
}

TEST_CASE("A long text is cut to some pages, with a note", "[figures][text]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.lengths = {3500};
    wish.layers = 1;
    wish.heads = wish.key_value_heads = 1;
    const auto file = folder.analysis("a", wish);
    const auto figure = make_figure("text", std::vector{file}, {});
    CHECK(noted(figure, "Tokens 0 to 2999 of 3500"));
    FigureOptions options;
    options.from_key = 100;
    options.to_key = 3400;
    try {
        make_figure("text", std::vector{file}, options);
        FAIL("drawn");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::limit);
    }
}

TEST_CASE("Lines are the weights of the chosen heads", "[figures][lines]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 1;
    options.heads = {3, 0};
    const auto figure = make_figure("lines", std::vector{file}, options);
    const auto& links = std::get<Links>(figure.panels.at(0).content);
    CHECK(links.left.size() == 24);
    CHECK(links.right[0] == "␣the");
    CHECK(figure.legend.size() == 2);
    CHECK(figure.legend[0].name == "head 3");
    FigureOptions one;
    one.layer = 1;
    one.head = 3;
    const auto map = make_figure("attention", std::vector{file}, one);
    const auto& cells = std::get<HeatMap>(map.panels[0].content).values;
    std::size_t drawn = 0, expected = 0;
    for (const auto& link : links.links) {
        if (link.colour != 0) continue;
        ++drawn;
        CHECK(link.weight == cells[static_cast<std::size_t>(link.left * 24 + link.right)]);
    }
    for (const float weight : cells) expected += weight >= 0.01F ? 1 : 0;
    CHECK(drawn == expected);
    CHECK(std::is_sorted(links.links.begin(), links.links.end(),
                         [](const auto& a, const auto& b) { return a.weight < b.weight; }));
    CHECK(lines(figure_csv(figure)) == 1 + 2 * 24 * 25 / 2);

    options.heads.clear();
    const auto mean = make_figure("lines", std::vector{file}, options);
    CHECK(mean.title.find("mean over heads") != std::string::npos);
    double sum = 0;
    for (const auto& link : std::get<Links>(mean.panels[0].content).links) sum += link.left == 5 ? link.weight : 0;
    CHECK(sum == Approx(1).margin(0.06));  // but for those below 0.01
}

TEST_CASE("Lines of too many tokens or heads are refused with what would do", "[figures][lines]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    wish.lengths = {80};
    wish.heads = wish.key_value_heads = 8;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    const auto words = refusal("lines", {file}, options);
    CHECK(words.find("at most 64") != std::string::npos);
    CHECK(words.find("--from-query 0 --to-query 64 --from-key 0 --to-key 64") != std::string::npos);
    options.to_query = options.to_key = 64;
    CHECK(make_figure("lines", std::vector{file}, options).panels.size() == 1);
    options.from_query = 60;
    options.from_key = 50;
    const auto part = make_figure("lines", std::vector{file}, options);
    CHECK(std::get<Links>(part.panels[0].content).first_left == 60);
    CHECK(std::get<Links>(part.panels[0].content).right.size() == 14);
    options.heads = {0, 1, 2, 3, 4, 5, 6, 7};
    CHECK(refusal("lines", {file}, options).find("at most 7 heads") != std::string::npos);
    options.heads = {0, 8};
    CHECK(refusal("lines", {file}, options).find("expected 0 to 7") != std::string::npos);
    CHECK(refusal("attention", {file}, options).find("--head") != std::string::npos);
    options.head = 1;
    CHECK(refusal("lines", {file}, options).find("found both") != std::string::npos);
}

TEST_CASE("Lines are drawn from the weight that is asked for", "[figures][lines]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    const auto file = folder.analysis("a", wish);
    FigureOptions options;
    options.layer = 1;
    options.head = 0;
    const auto drawn = [&](std::optional<double> least) {
        options.least = least;
        return std::get<Links>(make_figure("lines", std::vector{file}, options).panels.at(0).content).links;
    };
    const auto few = drawn(0.2);
    CHECK(few.size() < drawn({}).size());
    CHECK(std::all_of(few.begin(), few.end(), [](const auto& link) { return link.weight >= 0.2F; }));
    CHECK(drawn(0).size() == 300);
    options.least = 0.2;
    CHECK(noted(make_figure("lines", std::vector{file}, options), "Weights below 0.2 are not drawn"));
}
