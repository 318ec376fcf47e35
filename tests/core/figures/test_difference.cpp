// SPDX-License-Identifier: GPL-3.0-or-later
// Differences of two analyses.
#include <array>
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

const HeatMap& map_of(const FigureData& figure, std::size_t panel) {
    return std::get<HeatMap>(figure.panels.at(panel).content);
}

const HeatMap& cells(const FigureData& figure) {
    return map_of(figure, 0);
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

TEST_CASE("With both sides the maps stand before their difference, as attention draws them", "[figures][difference]") {
    const Two two;
    FigureOptions options;
    options.layer = 1;
    options.head = 3;
    const auto alone = make_figure("difference", std::vector{two.a, two.b}, options);
    options.sides = true;
    const auto figure = make_figure("difference", std::vector{two.a, two.b}, options);
    REQUIRE(figure.panels.size() == 3);
    CHECK(figure.columns == 3);
    CHECK_FALSE(figure.shared_colours);
    CHECK(figure.title == alone.title);
    CHECK(figure.panels[0].title == "Baseline: synthetic");
    CHECK(figure.panels[1].title == "Compared: other");
    CHECK(figure.panels[2].title == "Compared − baseline");
    options.sides = false;
    const std::array expected{make_figure("attention", std::vector{two.a}, options),
                              make_figure("attention", std::vector{two.b}, options), alone};
    for (std::size_t p = 0; p < 3; ++p) {
        INFO(p);
        const HeatMap &drawn = map_of(figure, p), &own = cells(expected[p]);
        REQUIRE(drawn.values.size() == own.values.size());
        for (std::size_t i = 0; i < own.values.size(); ++i) {
            if (std::isnan(own.values[i]) != std::isnan(drawn.values[i])) FAIL(i);
            if (!std::isnan(own.values[i]) && drawn.values[i] != own.values[i]) FAIL(i);
        }
        CHECK(drawn.colours.map == own.colours.map);
        CHECK(drawn.colours.maximum == own.colours.maximum);
        CHECK(drawn.colours.scale == ScaleKind::square_root);  // that of maps of short texts is the difference's, too
        CHECK(figure.panels[p].x.cell_labels == expected[p].panels[0].x.cell_labels);
    }
    CHECK(noted(figure, "Colors show the square root of the weight."));
    CHECK(noted(figure, "square-root color scale, symmetric around 0"));
    // Every number that is drawn is in the table.
    const Table table = figure.table();
    CHECK(table.columns[0].name == "panel");
    CHECK(table.rows() == 3 * 24 * 25 / 2);
    options.sides = true;
    options.scale = CellScale::logarithmic;
    const auto decades = make_figure("difference", std::vector{two.a, two.b}, options);
    CHECK(map_of(decades, 0).colours.scale == ScaleKind::logarithmic);
    CHECK(map_of(decades, 1).colours.scale == ScaleKind::logarithmic);
    CHECK(map_of(decades, 2).colours.scale == ScaleKind::square_root);
    options.scale = CellScale::linear;
    for (std::size_t p = 0; p < 3; ++p)
        CHECK(map_of(make_figure("difference", std::vector{two.a, two.b}, options), p).colours.scale ==
              ScaleKind::linear);
    options.scale = CellScale::row_rank;
    CHECK(refusal("difference", {two.a, two.b}, options).find("logarithmic or square-root with --sides") !=
          std::string::npos);
    // Scores share the end of their colors.
    options.scale = CellScale::by_length;
    options.values = MapValues::logits;
    const auto scores = make_figure("difference", std::vector{two.a, two.b}, options);
    CHECK(map_of(scores, 0).colours.maximum == map_of(scores, 1).colours.maximum);
    CHECK(map_of(scores, 2).colours.scale == ScaleKind::linear);
    options.head.reset();
    CHECK(refusal("difference", {two.a, two.b}, options).find("[--sides] expected --layer and --head") !=
          std::string::npos);
}

TEST_CASE("Both sides of a part show the tokens that lie on each other, in the scale of the whole texts",
          "[figures][difference]") {
    const Two two;
    auto wish = two.wish;
    wish.lengths = {300};
    wish.model_name = "synthetic";
    const auto own = two.folder.analysis("long", wish);
    std::vector<std::string> pieces(20, "more");
    const auto& tokens = own->header().sequences[0].pieces;
    pieces.insert(pieces.end(), tokens.begin(), tokens.end());
    wish.seed = 9;
    const auto later = two.folder.analysis("later", wish, words(pieces));
    FigureOptions options;
    options.layer = 0;
    options.head = 1;
    options.sides = true;
    options.from_query = 100;
    options.to_query = 140;
    options.from_key = 10;
    options.to_key = 40;
    const auto figure = make_figure("difference", std::vector{own, later}, options);
    REQUIRE(figure.panels.size() == 3);
    CHECK(figure.panels[0].y.first_cell == 100);
    CHECK(figure.panels[1].y.first_cell == 120);
    CHECK(figure.panels[1].x.first_cell == 30);
    CHECK(figure.panels[2].y.first_cell == 100);
    for (std::size_t p = 0; p < 3; ++p) {
        REQUIRE(map_of(figure, p).values.size() == 40 * 30);
        // Texts of more than 256 tokens need decades, also where a part is drawn.
        CHECK(map_of(figure, p).colours.scale == (p < 2 ? ScaleKind::logarithmic : ScaleKind::square_root));
    }
    for (std::size_t i = 0; i < 40 * 30; ++i) {
        const float change = map_of(figure, 1).values[i] - map_of(figure, 0).values[i];
        if (!(std::abs(map_of(figure, 2).values[i] - change) < 1e-6F)) FAIL(i);
    }
    CHECK(noted(figure, "Queries 100 to 139, keys 10 to 39."));
    CHECK(noted(figure, "Of the second map queries 120 to 159, keys 30 to 59."));
    options.pixels = 16;
    const auto pooled = make_figure("difference", std::vector{own, later}, options);
    for (std::size_t p = 0; p < 3; ++p) CHECK(map_of(pooled, p).values.size() == 256);
    CHECK(noted(pooled, "largest weight of the pairs under it"));
    CHECK(pooled.table().columns[4].name == "first_query");
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
