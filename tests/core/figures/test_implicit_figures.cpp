// SPDX-License-Identifier: GPL-3.0-or-later
// Figures of recurrent layers' implicit matrices, against the matrix that was written.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/figures/recipe.h"
#include "core/figures/word_units.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/head_options.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using namespace headscope::figures;
using File = std::shared_ptr<store::AnalysisFile>;

namespace {

constexpr std::int64_t kLength = 24;

struct Sample {
    explicit Sample(const tests::RecurrentSample& r = {}) {
        tests::write_recurrent_analysis(folder / "a.headscope.h5", r);
        file = store::AnalysisFile::open(folder / "a.headscope.h5");
    }
    float at(std::int64_t head, std::int64_t i, std::int64_t j) const {
        return matrix[static_cast<std::size_t>((head * kLength + i) * kLength + j)];
    }
    FigureData make(const std::string& recipe, const FigureOptions& options) const {
        return make_figure(recipe, std::vector{file}, options);
    }
    std::string refusal(const std::string& recipe, const FigureOptions& options) const {
        try {
            make(recipe, options);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::usage);
            return error.what();
        }
        return "";
    }

    test::TemporaryFolder folder;
    File file;
    std::vector<float> matrix = tests::synthetic_implicit(4, kLength, 1 + tests::kRecurrentSite);  ///< of layer 1
};

bool noted(const FigureData& figure, const std::string& words) {
    return std::any_of(figure.notes.begin(), figure.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("The map of a recurrent layer has its coefficients, in colours from minus to plus", "[figures][implicit]") {
    const Sample sample;
    const auto figure = sample.make("attention", options_for(1, 2));
    const auto& map = std::get<HeatMap>(figure.panels.at(0).content);
    REQUIRE(map.rows == kLength);
    float most = 0;
    for (std::int64_t i = 0; i < kLength; ++i) {
        for (std::int64_t j = 0; j < kLength; ++j) {
            const float value = map.values[static_cast<std::size_t>(i * kLength + j)];
            if (j > i) {
                REQUIRE(std::isnan(value));
                continue;
            }
            REQUIRE(value == sample.at(2, i, j));
            most = std::max(most, std::abs(value));
        }
    }
    CHECK(map.colours.map == ColourMap::diverging);
    CHECK(map.colours.maximum == static_cast<double>(most));
    CHECK(map.colours.minimum == -map.colours.maximum);
    CHECK(map.pooling == Pooling::extreme);
    CHECK(noted(figure, "Implicit attention"));
    CHECK(figure_csv(figure).find(",coefficient\r\n") != std::string::npos);

    auto pooled = options_for(1, 2);
    pooled.pixels = 16;
    const auto small = sample.make("attention", pooled);
    const auto& cells = std::get<HeatMap>(small.panels.at(0).content);
    REQUIRE(cells.rows == 16);
    float farthest = 0;
    for (std::int64_t i = 0; i < kLength; ++i)
        for (std::int64_t j = 0; j <= i; ++j)
            if (i * 16 / kLength == 9 && j * 16 / kLength == 6 && std::abs(sample.at(2, i, j)) > std::abs(farthest))
                farthest = sample.at(2, i, j);
    CHECK(cells.values[9 * 16 + 6] == farthest);
    CHECK(figure_csv(small).find("extreme_coefficient") != std::string::npos);
}

TEST_CASE("Of a layer with two branches either is drawn, or both", "[figures][implicit]") {
    const Sample sample;
    const auto both = sample.make("attention", options_for(0, 1));
    REQUIRE(both.panels.size() == 2);
    CHECK(both.panels[0].title == "layer 0, softmax branch");
    CHECK(both.panels[1].title == "layer 0, linear branch");
    CHECK(std::get<HeatMap>(both.panels[0].content).colours.map == ColourMap::sequential);
    CHECK(std::get<HeatMap>(both.panels[1].content).colours.map == ColourMap::diverging);
    CHECK_FALSE(both.shared_colours);
    CHECK(figure_csv(both).find(",value\r\n") != std::string::npos);
    auto linear = options_for(0, 3);
    CHECK(!sample.refusal("attention", linear).empty());  // the softmax branch has two heads
    linear.tower = Tower::linear;
    CHECK(sample.make("attention", linear).panels.size() == 1);
    const auto& sites = sample.file->header().sites;
    CHECK(tower_of(sites, tests::kLinearBranch) == Tower::linear);
    CHECK(tower_of(sites, tests::kSoftmaxBranch) == Tower::softmax);
    CHECK(tower_of(sites, tests::kRecurrentSite) == Tower::any);
}

TEST_CASE("What an implicit matrix has not, and what was not recorded, is refused", "[figures][implicit]") {
    const Sample sample;
    auto options = options_for(1, 0);
    options.values = MapValues::logits;
    CHECK(sample.refusal("attention", options).find("recurrent") != std::string::npos);
    options.values = MapValues::weights;
    options.all_sequences = true;
    options.units = Units::words;
    CHECK(sample.refusal("attention", options).find("--units words") != std::string::npos);

    tests::RecurrentSample bare;
    bare.record = {};
    const Sample without(bare);
    for (const char* recipe : {"attention", "lines"})
        CHECK(without.refusal(recipe, options_for(1, 0)).find("--record implicit") != std::string::npos);
    auto row = options_for(1, 0);
    row.query = 5;
    CHECK(without.refusal("text", row).find("--record implicit") != std::string::npos);
    FigureOptions layer;
    layer.layer = 1;
    CHECK(without.refusal("thumbnails", layer).find("--record implicit") != std::string::npos);
}

TEST_CASE("A recurrent layer has a mean over sequences and words", "[figures][implicit]") {
    const Sample sample;
    auto options = options_for(1, 2);
    options.all_sequences = true;
    const auto mean = sample.make("attention", options);
    const std::vector<float> second = tests::synthetic_implicit(4, 19, 1 + 17 + tests::kRecurrentSite);
    const auto& map = std::get<HeatMap>(mean.panels.at(0).content);
    REQUIRE(map.rows == kLength);
    double most = 0;
    for (std::int64_t i = 0; i < kLength; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
            const auto one = static_cast<double>(sample.at(2, i, j));
            const double wanted =
                i < 19 ? (one + static_cast<double>(second[static_cast<std::size_t>((2 * 19 + i) * 19 + j)])) / 2 : one;
            REQUIRE(static_cast<double>(map.values[static_cast<std::size_t>(i * kLength + j)]) ==
                    Approx(wanted).margin(1e-7));
            most = std::max(most, std::abs(wanted));
        }
    CHECK(map.colours.map == ColourMap::diverging);
    CHECK(map.colours.maximum == Approx(most));
    CHECK(noted(mean, "Mean over sequences"));
    CHECK(figure_csv(mean).find("deviation") != std::string::npos);
    options.pooling = Pooling::mean;
    options.pixels = 16;
    CHECK(std::get<HeatMap>(sample.make("attention", options).panels.at(0).content).rows == 16);

    auto words = options_for(1, 2);
    words.units = Units::words;
    const WordUnits units = word_units(sample.file->header().sequences[0]);
    const auto count = std::ssize(units.tokens.ids);
    const auto of_words = sample.make("attention", words);
    const auto& cells = std::get<HeatMap>(of_words.panels.at(0).content);
    REQUIRE(cells.rows == count);
    CHECK(cells.colours.map == ColourMap::diverging);
    // A row's coefficients add up to the mean of its pieces' rows.
    for (std::int64_t w = 0; w < count; ++w) {
        double of_word = 0, of_pieces = 0;
        for (std::int64_t k = 0; k <= w; ++k)
            of_word += static_cast<double>(cells.values[static_cast<std::size_t>(w * count + k)]);
        const std::int64_t begin = units.begins[static_cast<std::size_t>(w)],
                           end = units.begins[static_cast<std::size_t>(w) + 1];
        for (std::int64_t i = begin; i < end; ++i)
            for (std::int64_t j = 0; j <= i; ++j) of_pieces += static_cast<double>(sample.at(2, i, j));
        CHECK(of_word == Approx(of_pieces / static_cast<double>(end - begin)).margin(1e-5));
    }
    CHECK(sample.make("lines", words).panels.size() == 1);
    auto row = words;
    row.query = count - 1;
    CHECK(sample.make("text", row).panels.size() == 1);
}

TEST_CASE("The radar of a recurrent layer has entropy and concentration", "[figures][implicit]") {
    const Sample sample;
    const auto figure = sample.make("radar", {});
    CHECK(noted(figure, "Recurrent layers have H and C"));
    const auto& radar = std::get<Radar>(figure.panels.at(tests::kRecurrentSite).content);
    CHECK(radar.nothing.empty());
    CHECK(std::isfinite(radar.series.at(0).values.at(0)));
    CHECK(std::isfinite(radar.series.at(0).values.at(1)));
    CHECK(std::isnan(radar.series.at(0).values.at(7)));
    CHECK(std::get<Radar>(figure.panels.at(4).content).nothing == "no attention matrix");
}

TEST_CASE("Implicit matrices are subtracted, from each other and from weights", "[figures][implicit][difference]") {
    const Sample sample;
    tests::RecurrentSample other;
    other.seed = 6;
    const Sample second(other);
    const std::vector<float> theirs = tests::synthetic_implicit(4, kLength, 6 + tests::kRecurrentSite);
    const auto figure = make_figure("difference", std::vector{sample.file, second.file}, options_for(1, 2));
    const auto& map = std::get<HeatMap>(figure.panels.at(0).content);
    REQUIRE(map.rows == kLength);
    float most = 0;
    for (std::int64_t i = 0; i < kLength; ++i) {
        for (std::int64_t j = 0; j < kLength; ++j) {
            const float value = map.values[static_cast<std::size_t>(i * kLength + j)];
            REQUIRE(std::isnan(value) == (j > i));
            if (j > i) continue;
            REQUIRE(value == theirs[static_cast<std::size_t>((2 * kLength + i) * kLength + j)] - sample.at(2, i, j));
            most = std::max(most, std::abs(value));
        }
    }
    CHECK(map.colours.map == ColourMap::diverging);
    CHECK(map.colours.maximum == static_cast<double>(most));
    CHECK(map.colours.label == "difference of coefficients");
    CHECK(noted(figure, "Coefficients of the second minus those of the first"));
    CHECK(noted(figure, "Implicit attention"));

    // Softmax attention of layer 2 minus a recurrent layer, and the other way round.
    auto mixed = options_for(1, 2);
    mixed.other_layer = 2;
    mixed.other_head = 1;
    const auto weights = std::get<HeatMap>(sample.make("attention", options_for(2, 1)).panels.at(0).content).values;
    const auto apart = sample.make("difference", mixed);
    const auto& cells = std::get<HeatMap>(apart.panels.at(0).content);
    for (std::int64_t i = 0; i < kLength; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
            const auto at = static_cast<std::size_t>(i * kLength + j);
            REQUIRE(cells.values[at] == weights[at] - sample.at(2, i, j));
        }
    CHECK(cells.colours.label == "weight minus coefficient");
    CHECK(noted(apart, "Weights of the second minus coefficients of the first"));
    // Beside their difference each has its own colors.
    mixed.sides = true;
    const auto three = sample.make("difference", mixed);
    REQUIRE(three.panels.size() == 3);
    const auto& signs = std::get<HeatMap>(three.panels[0].content);
    CHECK(signs.colours.map == ColourMap::diverging);
    CHECK(signs.values[5 * kLength + 2] == sample.at(2, 5, 2));
    CHECK(std::get<HeatMap>(three.panels[1].content).colours.map == ColourMap::sequential);
    CHECK(std::get<HeatMap>(three.panels[1].content).values[5 * kLength + 2] == weights[5 * kLength + 2]);
    CHECK(three.panels[1].title.starts_with("Compared: layer 2"));
    CHECK(noted(three, "Coefficients: colored from minus to plus"));
    CHECK(noted(three, "Colors show the square root of the weight."));
    auto back = options_for(2, 1);
    back.other_layer = 1;
    back.other_head = 2;
    const auto reverse = sample.make("difference", back);
    CHECK(std::get<HeatMap>(reverse.panels.at(0).content).values[5 * kLength + 2] == -cells.values[5 * kLength + 2]);

    // Both branches of a layer, each with its own kind.
    const auto branches = make_figure("difference", std::vector{sample.file, second.file}, options_for(0, 1));
    REQUIRE(branches.panels.size() == 2);
    CHECK(noted(branches, "weights, and coefficients of recurrent layers"));
    auto both = options_for(0, 1);
    both.sides = true;
    const auto rows = make_figure("difference", std::vector{sample.file, second.file}, both);
    REQUIRE(rows.panels.size() == 6);
    CHECK(rows.columns == 3);
    CHECK(rows.panels[5].title == "Compared − baseline, " + branches.panels[1].title);

    // Two texts of one analysis.
    auto texts = options_for(1, 2);
    texts.sequence = 0;
    texts.other_sequence = 1;
    CHECK(sample.make("difference", texts).panels.size() == 1);

    auto logits = options_for(1, 2);
    logits.other_head = 0;
    logits.values = MapValues::logits;
    CHECK(sample.refusal("difference", logits).find("recurrent") != std::string::npos);
    tests::RecurrentSample bare;
    bare.record = {};
    bare.record.maps = true;
    const Sample without(bare);
    CHECK(without.refusal("difference", back).find("--record implicit") != std::string::npos);
}

TEST_CASE("Lines of a recurrent layer: magnitudes as shares of the greatest, a colour for each sign",
          "[figures][implicit]") {
    const Sample sample;
    const auto figure = sample.make("lines", options_for(1, 1));
    const auto& links = std::get<Links>(figure.panels.at(0).content);
    float most = 0;
    for (std::int64_t i = 0; i < kLength; ++i)
        for (std::int64_t j = 0; j <= i; ++j) most = std::max(most, std::abs(sample.at(1, i, j)));
    REQUIRE(!links.links.empty());
    for (const auto& link : links.links) {
        const float value = sample.at(1, link.left, link.right);
        REQUIRE(link.weight == std::abs(value) / most);
        REQUIRE(link.colour == (value < 0 ? 1 : 0));
    }
    CHECK(figure.legend.size() == 2);
    FigureOptions several;
    several.layer = 1;
    several.heads = {0, 1};
    CHECK(sample.refusal("lines", several).find("signs") != std::string::npos);
}

TEST_CASE("On the text: a query's coefficients, and who reads a key", "[figures][implicit]") {
    const Sample sample;
    auto options = options_for(1, 2);
    options.query = 20;
    const auto figure = sample.make("text", options);
    const auto& block = std::get<TextBlock>(figure.panels.at(0).content);
    std::vector<float> values;
    for (const auto& chip : block.chips) values.insert(values.end(), chip.values.begin(), chip.values.end());
    REQUIRE(values.size() == kLength);
    float most = 0;
    for (std::int64_t j = 0; j <= 20; ++j) {
        CHECK(values[static_cast<std::size_t>(j)] == sample.at(2, 20, j));
        most = std::max(most, std::abs(sample.at(2, 20, j)));
    }
    CHECK(std::isnan(values[21]));
    CHECK(block.colours.map == ColourMap::diverging);
    CHECK(block.colours.minimum == -static_cast<double>(most));
}

TEST_CASE("Thumbnails: with signs where all are of recurrent layers, magnitudes beside weights",
          "[figures][implicit]") {
    const Sample sample;
    FigureOptions layer;
    layer.layer = 1;
    layer.statistic = "maximum";
    const auto one = sample.make("thumbnails", layer);
    const auto& mosaic = std::get<Mosaic>(one.panels.at(0).content);
    CHECK(mosaic.colours.map == ColourMap::diverging);
    CHECK(mosaic.pooling == Pooling::extreme);
    REQUIRE(mosaic.size == kLength);
    CHECK(mosaic.values[static_cast<std::size_t>((2 * kLength + 9) * kLength + 4)] == sample.at(2, 9, 4));
    FigureOptions all;
    const auto whole = sample.make("thumbnails", all);
    const auto& mixed = std::get<Mosaic>(whole.panels.at(0).content);
    CHECK(mixed.colours.map == ColourMap::sequential);
    CHECK(std::all_of(mixed.values.begin(), mixed.values.end(), [](float v) { return std::isnan(v) || v >= 0; }));
    CHECK(noted(whole, "magnitudes"));
}
