// SPDX-License-Identifier: GPL-3.0-or-later
// Differences of two analyses.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/figures/figure_files.h"

using namespace headscope;
using namespace headscope::figures;
using namespace headscope::tests;

namespace {

std::string mismatch(const std::vector<std::shared_ptr<store::AnalysisFile>>& files,
                     const FigureOptions& options = {}) {
    try {
        make_figure("difference", files, options);
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::mismatch);
        return error.what();
    }
    return "";
}

struct Two {
    Two() {
        wish.record.maps = true;
        a = folder.analysis("a", wish);
        wish.seed = 5;
        wish.model_name = "other";
        b = folder.analysis("b", wish);
    }
    FigureFiles folder;
    SyntheticAnalysis wish;
    std::shared_ptr<store::AnalysisFile> a, b;
};

store::SequenceTokens words(const std::vector<std::string>& pieces) {
    store::SequenceTokens tokens;
    for (const auto& piece : pieces) {
        const auto begin = std::ssize(tokens.text);
        tokens.text += piece == "\xE6" ? "x" : piece;  // half a character
        tokens.ids.push_back(static_cast<std::int32_t>(tokens.ids.size() % 32));
        tokens.pieces.push_back(piece);
        tokens.offsets.push_back({begin, std::ssize(tokens.text)});
    }
    return tokens;
}

const HeatMap& cells(const FigureData& figure) {
    return std::get<HeatMap>(figure.panels.at(0).content);
}

}  // namespace

TEST_CASE("An indicator's difference is the second minus the first, symmetric around zero", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.indicator = "sink";
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    CHECK(figure.title == "Sink: other minus synthetic");
    const auto first = two.a->indicator("sink").data, second = two.b->indicator("sink").data;
    double most = 0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < 12; ++i) {
        CHECK(cells(figure).values[i] == Approx(second[i] - first[i]).margin(1e-7));
        if (std::abs(second[i] - first[i]) <= most) continue;
        most = std::abs(second[i] - first[i]);
        where = i;
    }
    CHECK(cells(figure).colours.map == ColourMap::diverging);
    CHECK(cells(figure).colours.maximum == Approx(most));
    CHECK(cells(figure).colours.minimum == -cells(figure).colours.maximum);
    CHECK(noted(figure, "Largest differences: " + std::to_string(where / 4) + "." + std::to_string(where % 4) + " "));
    const Table table = figure.table();
    CHECK(table.rows() == 12);
    CHECK(std::get<std::vector<std::int64_t>>(table.columns[7].values)[where] == 1);
}

TEST_CASE("Local focus is compared at the distances that both files have", "[figures][difference]") {
    const FigureFiles folder;
    SyntheticAnalysis wish;
    const auto a = folder.analysis("a", wish);
    wish.local_distances = {1, 3, 8};
    wish.seed = 5;
    const auto b = folder.analysis("b", wish);
    wish.local_distances = {5, 6};
    const auto c = folder.analysis("c", wish);
    FigureOptions options;
    options.indicator = "local_focus";
    const auto figure = make_figure("difference", std::vector{a, b}, options);
    CHECK(figure.panels.size() == 2);
    const Table table = figure.table();
    const auto& names = std::get<std::vector<std::string>>(table.columns[3].values);
    const auto& values = std::get<std::vector<double>>(table.columns[6].values);
    REQUIRE(names.size() == 24);
    const auto first = a->indicator("local_focus").data, second = b->indicator("local_focus").data;
    for (std::size_t i = 0; i < 12; ++i) {
        CHECK(names[i] == "local_focus_1");
        CHECK(names[12 + i] == "local_focus_3");
        CHECK(values[i] == Approx(second[3 * i] - first[4 * i + 1]).margin(1e-12));
        CHECK(values[12 + i] == Approx(second[3 * i + 1] - first[4 * i + 3]).margin(1e-12));
    }
    CHECK(mismatch({a, c}, options).find("both files") != std::string::npos);
    options.indicator.clear();
    CHECK(make_figure("difference", std::vector{a, c}, options).panels.size() > 1);
}

TEST_CASE("What is kept of the logits is compared as an indicator is", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.indicator = "score_maximum";
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    CHECK(figure.title == "Largest score: other minus synthetic");
    REQUIRE(figure.panels.size() == 1);
    const auto first = two.a->score_statistic("maximum").data, second = two.b->score_statistic("maximum").data;
    for (std::size_t i = 0; i < 12; ++i) CHECK(cells(figure).values[i] == Approx(second[i] - first[i]).margin(1e-6));
}

TEST_CASE("Without a name all indicators are compared, by share of their ranges", "[figures][difference]") {
    const Two two;
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, {});
    CHECK(figure.panels.size() == 14);
    CHECK(noted(figure, "Left out, as equal in both: Sparsity"));
    CHECK(noted(figure, "by share of the indicator's range"));
    const auto same = make_figure("difference", std::vector{two.a, two.a}, {});
    CHECK(noted(same, "No head differs."));
    CHECK(same.panels.size() == 1);
    FigureOptions options;
    options.all_sequences = true;
    CHECK(make_figure("difference", std::vector{two.a, two.b}, options).table().columns.back().name == "deviation");
}

TEST_CASE("A head's maps are compared weight by weight", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    const auto first = make_figure("attention", std::vector{two.a}, options);
    const auto second = make_figure("attention", std::vector{two.b}, options);
    REQUIRE(cells(figure).values.size() == 576);
    for (std::size_t i = 0; i < 576; ++i) {
        const float expected = cells(second).values[i] - cells(first).values[i];
        if (std::isnan(expected) != std::isnan(cells(figure).values[i])) FAIL(i);
        if (!std::isnan(expected)) CHECK(cells(figure).values[i] == expected);
    }
    CHECK(figure.title == "Attention, layer 1, head 3: other minus synthetic");
    CHECK(figure.panels[0].x.cell_labels[0] == "␣the");
    CHECK(cells(figure).pooling == Pooling::extreme);
    options.pixels = 16;
    const auto pooled = make_figure("difference", std::vector{two.a, two.b}, options);
    std::vector<float> most(256, NAN);
    for (std::size_t r = 0; r < 24; ++r) {
        for (std::size_t c = 0; c <= r; ++c) {
            float& cell = most[r * 16 / 24 * 16 + c * 16 / 24];
            const float value = cells(figure).values[r * 24 + c];
            if (std::isnan(cell) || std::abs(value) > std::abs(cell)) cell = value;
        }
    }
    for (std::size_t i = 0; i < 256; ++i) {
        CHECK(std::isnan(most[i]) == std::isnan(cells(pooled).values[i]));
        if (!std::isnan(most[i])) CHECK(cells(pooled).values[i] == most[i]);
    }
    CHECK(noted(pooled, "farthest from 0"));
    // With an indicator named, it is the indicator of that head.
    options.indicator = "sink";
    CHECK(cells(make_figure("difference", std::vector{two.a, two.b}, options)).values.size() == 1);
}

TEST_CASE("Two heads of one analysis are compared, and of two", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    const auto one = make_figure("attention", std::vector{two.a}, options);
    options.layer = 2;
    options.head = 0;
    const auto left = make_figure("attention", std::vector{two.a}, options);
    const auto far = make_figure("attention", std::vector{two.b}, options);
    options.layer = 1;
    options.head = 3;
    options.other_layer = 2;
    options.other_head = 0;
    const auto figure = make_figure("difference", std::vector{two.a}, options);
    const auto both = make_figure("difference", std::vector{two.a, two.b}, options);
    for (std::size_t i = 0; i < 576; ++i) {
        if (std::isnan(cells(one).values[i])) continue;
        CHECK(cells(figure).values[i] == cells(left).values[i] - cells(one).values[i]);
        CHECK(cells(both).values[i] == cells(far).values[i] - cells(one).values[i]);
    }
    CHECK(figure.title == "Attention: layer 2, head 0 minus layer 1, head 3");
    CHECK(both.title == "Attention: layer 2, head 0 of other minus layer 1, head 3 of synthetic");
    CHECK(figure.notes.front() == "synthetic, 24 tokens.");
    CHECK(figure.table().columns.back().name == "other_head");
    options.other_head = 9;
    CHECK(refusal("difference", {two.a}, options).find("[--head] expected 0 to 3") != std::string::npos);
    options.head.reset();
    CHECK(refusal("difference", {two.a}, options).find("[--other-head]") != std::string::npos);
}

TEST_CASE("Maps of two texts are paired by their tokens, and a token without a partner is grey",
          "[figures][difference]") {
    const Two two;
    // The second text begins with a word more, lacks the first two, has others between and at its end.
    const auto& own = two.a->header().sequences[0].pieces;
    std::vector<std::string> pieces{"more"};
    std::vector<std::int64_t> partners(24, -1);
    for (std::size_t i = 2; i < 24; ++i) {
        if (i == 12) pieces.insert(pieces.end(), {"between", "these"});
        partners[i] = std::ssize(pieces);
        pieces.push_back(own[i]);
    }
    pieces.emplace_back("end");
    auto wish = two.wish;
    wish.seed = 7;
    wish.layers = 1;  // another model: one map of each is compared, whatever else they have
    const auto other = two.folder.analysis("e", wish, words(pieces));
    FigureOptions options;
    options.layer = 0;
    options.head = 1;
    const auto first = make_figure("attention", std::vector{two.a}, options);
    const auto second = make_figure("attention", std::vector{other}, options);
    const auto figure = make_figure("difference", std::vector{two.a, other}, options);
    REQUIRE(cells(figure).values.size() == 576);
    for (std::size_t q = 0; q < 24; ++q) {
        for (std::size_t k = 0; k < 24; ++k) {
            const float value = cells(figure).values[q * 24 + k];
            if (k > q || partners[q] < 0 || partners[k] < 0) {
                CHECK(std::isnan(value));
                continue;
            }
            const auto at = static_cast<std::size_t>(partners[q] * std::ssize(pieces) + partners[k]);
            CHECK(value == cells(second).values[at] - cells(first).values[q * 24 + k]);
        }
    }
    CHECK(noted(figure,
                "22 of the 24 tokens of the first are paired with equal ones of the second's 26, in their "
                "order."));
    CHECK(noted(figure, "or a token without a partner"));
    const Table table = figure.table();
    REQUIRE(table.columns.back().name == "other_key");
    const auto& queries = std::get<std::vector<std::int64_t>>(table.columns[3].values);
    CHECK(table.columns[3].name == "query");
    const auto& matched = std::get<std::vector<std::int64_t>>(table.columns[table.columns.size() - 2].values);
    for (std::size_t i = 0; i < queries.size(); ++i)
        CHECK(matched[i] == partners[static_cast<std::size_t>(queries[i])]);
    // A part of it is that part.
    options.from_query = 10;
    options.to_query = 20;
    options.from_key = 3;
    options.to_key = 9;
    const auto part = make_figure("difference", std::vector{two.a, other}, options);
    REQUIRE(cells(part).values.size() == 60);
    for (std::size_t i = 0; i < 60; ++i)
        CHECK(cells(part).values[i] == cells(figure).values[(10 + i / 6) * 24 + 3 + i % 6]);
}

TEST_CASE("Two sequences of one analysis are compared, heads and maps", "[figures][difference]") {
    FigureFiles folder;
    SyntheticAnalysis wish;
    wish.record.maps = true;
    wish.lengths = {24, 17};
    const auto file = folder.analysis("two", wish);
    FigureOptions options;
    options.other_sequence = 1;
    options.indicator = "sink";
    const auto heads = make_figure("difference", std::vector{file}, options);
    CHECK(heads.title == "Sink: sequence 1 minus sequence 0");
    CHECK(heads.notes.front() == "synthetic, 24 tokens, sequence 0; synthetic, 17 tokens, sequence 1.");
    const auto sink = file->indicator("sink").data;
    for (std::size_t i = 0; i < 12; ++i) CHECK(cells(heads).values[i] == Approx(sink[12 + i] - sink[i]).margin(1e-7));
    options.indicator.clear();
    options.layer = 2;
    options.head = 3;
    const auto maps = make_figure("difference", std::vector{file}, options);
    CHECK(maps.title == "Attention, layer 2, head 3: sequence 1 minus sequence 0");
    CHECK(noted(maps, "17 of the 24 tokens"));
    options.other_sequence.reset();
    const auto one = make_figure("attention", std::vector{file}, options);
    options.sequence = 1;
    const auto other = make_figure("attention", std::vector{file}, options);
    for (std::size_t q = 0; q < 17; ++q)
        for (std::size_t k = 0; k <= q; ++k)
            CHECK(cells(maps).values[q * 24 + k] == cells(other).values[q * 17 + k] - cells(one).values[q * 24 + k]);
}

TEST_CASE("What cannot be compared is refused in one line", "[figures][difference]") {
    const Two two;
    CHECK(refusal("difference", {two.a}).find("expected two analysis files, or one") != std::string::npos);
    auto wish = two.wish;
    wish.heads = 2;
    CHECK(mismatch({two.a, two.folder.analysis("c", wish)}).find("same layers and heads") != std::string::npos);
    wish = two.wish;
    wish.layers = 4;
    CHECK(mismatch({two.a, two.folder.analysis("d", wish)}).find("found a.headscope.h5 with 3") != std::string::npos);
    wish = two.wish;
    wish.lengths = {24, 24};
    const auto more = two.folder.analysis("f", wish);
    FigureOptions options;
    options.all_sequences = true;
    CHECK(mismatch({two.a, more}, options).find("as many sequences") != std::string::npos);
    options.other_sequence = 1;
    CHECK(refusal("difference", {more}, options).find("[--other-sequence] expected one") != std::string::npos);
    options = {};
    options.other_sequence = 2;
    CHECK(refusal("difference", {more}, options).find("[--other-sequence] expected 0 to 1") != std::string::npos);
    // Texts without a common token have no pair of cells.
    options = {};
    options.layer = options.head = 0;
    const auto apart = two.folder.analysis("g", two.wish, words({"a", "b", "c"}));
    CHECK(mismatch({two.a, apart}, options).find("expected texts with a token in common") != std::string::npos);
}
