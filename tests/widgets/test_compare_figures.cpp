// SPDX-License-Identifier: GPL-3.0-or-later
// What Export draws of a comparison.
#include <cmath>

#include "core/figures/make_figure.h"
#include "tests/widgets/compare_fixture.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/views/compare/heads_page.h"
#include "widgets/views/overview/overview_grid.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::Compared, tests::compared_analysis;

namespace {

figures::FigureData drawn(const Compared& opened, const FigureRequest& wish) {
    std::vector<std::shared_ptr<store::AnalysisFile>> files;
    for (const int id : wish.studies) files.push_back(store::AnalysisFile::open(opened.desk.study(id)->path()));
    return figures::make_figure(wish.recipe, files, wish.options);
}

const figures::HeatMap& map_of(const figures::FigureData& figure, std::size_t panel) {
    return std::get<figures::HeatMap>(figure.panels.at(panel).content);
}

/// Cells of the difference, which comes last.
const std::vector<float>& values(const figures::FigureData& figure) {
    return map_of(figure, figure.panels.size() - 1).values;
}

/// The greatest magnitude, which the view's colours reach to.
double most(const std::vector<float>& values) {
    double most = 0;
    for (const float value : values)
        if (!std::isnan(value)) most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
}

}  // namespace

TEST_CASE("Two texts of different length have a figure of their difference, as the maps show it", "[view][compare]") {
    Compared opened({compared_analysis(1, {24}), compared_analysis(2, {31})});
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    const auto figure = drawn(opened, *wish);
    CHECK(values(figure).size() == 24 * 24);
    CHECK(most(values(figure)) == Approx(opened.view->maps()->reach()).epsilon(1e-5));
    const auto map = opened.plot(CompareMaps::difference).content();
    CHECK(map.queries == 24);
    // From the other side: the second text's tokens that the first lacks are gray.
    opened.view->swap();
    opened.settle();
    const auto back = opened.view->figure();
    REQUIRE(back);
    CHECK(back->studies == std::vector<int>{opened.studies[1]->id(), opened.studies[0]->id()});
    const auto swapped = drawn(opened, *back);
    REQUIRE(values(swapped).size() == 31 * 31);
    CHECK(values(swapped)[5 * 31 + 3] == -values(figure)[5 * 24 + 3]);
    CHECK(std::isnan(values(swapped)[30 * 31 + 3]));
    opened.mode("compare_heads");
    REQUIRE(opened.view->figure());
    CHECK_NOTHROW(drawn(opened, *opened.view->figure()));
}

TEST_CASE("The maps' figure has the three panels of the page: numbers, part and colors", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    opened.plot(CompareMaps::left).show_cells({4, 14, 2, 12});
    opened.settle();
    for (const int scale : {0, 1, 2, 3}) {  // automatic, linear, logarithmic, square root
        opened.choose("compare_scale", scale);
        const auto wish = opened.view->figure();
        REQUIRE(wish);
        CHECK(wish->options.sides);
        CHECK(wish->note.isEmpty());
        const auto figure = drawn(opened, *wish);
        REQUIRE(figure.panels.size() == 3);
        const auto left = opened.weights(0), right = opened.weights(1);
        for (const auto which : {CompareMaps::left, CompareMaps::right, CompareMaps::difference}) {
            const maps::Cells shown = opened.plot(which).shown();
            const auto& panel = figure.panels[which];
            INFO(scale << ", " << panel.title);
            CHECK(panel.y.first_cell == shown.q_begin);
            CHECK(panel.x.first_cell == shown.k_begin);
            const figures::HeatMap& map = map_of(figure, which);
            REQUIRE(map.rows == shown.queries());
            REQUIRE(map.columns == shown.keys());
            const figures::ColourScale& colours = opened.plot(which).colours();
            CHECK(map.colours.map == colours.map);
            CHECK(map.colours.scale == colours.scale);
            CHECK(map.colours.minimum == Approx(colours.minimum));
            CHECK(map.colours.maximum == Approx(colours.maximum));
            for (std::int64_t i = 0; i < map.rows * map.columns; ++i) {
                const std::int64_t q = shown.q_begin + i / map.columns, k = shown.k_begin + i % map.columns;
                const auto at = static_cast<std::size_t>(q * 24 + k);
                const float value = map.values[static_cast<std::size_t>(i)];
                const float expected = which == CompareMaps::left    ? left[at]
                                       : which == CompareMaps::right ? right[at]
                                                                     : right[at] - left[at];
                if (std::isnan(value) != (k > q)) FAIL(i);
                if (k <= q) CHECK(value == Approx(expected).margin(1e-6));
            }
        }
    }
    CHECK(opened.title("left_map_title").contains("Baseline: synthetic (a)"));
    const auto figure = drawn(opened, *opened.view->figure());
    CHECK(figure.panels[0].title == "Baseline: synthetic (a)");
    CHECK(figure.panels[1].title == "Compared: synthetic (b)");
}

TEST_CASE("Two sequences of one analysis have figures, of their maps and of all heads", "[view][compare]") {
    Compared opened({compared_analysis(1, {24, 17})});
    opened.choose("compare_sequence", 2);
    auto wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->studies.size() == 1);
    CHECK(wish->options.sequence == 0);
    CHECK(wish->options.other_sequence == 1);
    CHECK(most(values(drawn(opened, *wish))) == Approx(opened.view->maps()->reach()).epsilon(1e-5));
    opened.mode("compare_heads");
    wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(wish->options.indicator == "sink");
    const auto sink = store::AnalysisFile::open(opened.studies[0]->path())->indicator("sink").data;
    CHECK(values(drawn(opened, *wish)).at(6) == Approx(sink[12 + 6] - sink[6]).margin(1e-7));
    opened.mode("compare_text");
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("Single maps of models with other layers and heads have a figure", "[view][compare]") {
    tests::SyntheticAnalysis wide = compared_analysis(2);
    wide.heads = 6;
    wide.layers = 2;
    Compared opened({compared_analysis(1), wide});
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    CHECK(most(values(drawn(opened, *wish))) == Approx(opened.view->maps()->reach()).epsilon(1e-5));
    opened.mode("compare_heads");
    CHECK_FALSE(opened.view->figure());
}

TEST_CASE("Every measure of all heads has a figure of its difference; all together say what they are instead",
          "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    opened.mode("compare_heads");
    for (const char* measure : {"sink", "score_maximum", "above_10"}) {
        opened.view->heads()->set_measure(QLatin1String(measure));
        opened.settle();
        const auto wish = opened.view->figure();
        REQUIRE(wish);
        CHECK(wish->options.indicator == measure);
        CHECK(wish->note.isEmpty());
        const auto figure = drawn(opened, *wish);
        REQUIRE(figure.panels.size() == 1);
        const auto& cells = std::get<figures::HeatMap>(figure.panels[0].content).values;
        const auto& shown = opened.view->heads()->grid()->content().cells.values;
        REQUIRE(cells.size() == shown.size());
        for (std::size_t i = 0; i < cells.size(); ++i) CHECK(cells[i] == Approx(shown[i]).margin(1e-5));
    }
    opened.view->heads()->set_measure({});
    REQUIRE(opened.view->figure());
    CHECK_FALSE(opened.view->figure()->note.isEmpty());
}

TEST_CASE("The command of a difference names the baseline first, also after a swap", "[view][compare]") {
    Compared opened({compared_analysis(1), compared_analysis(2)});
    opened.view->swap();
    opened.settle();
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    ExportDialog dialog(&opened.desk, "/bin/false");
    dialog.show_wish(*wish);
    const QString command = dialog.command();
    INFO(command.toStdString());
    CHECK(command.indexOf("b.headscope.h5") >= 0);
    CHECK(command.indexOf("b.headscope.h5") < command.indexOf("a.headscope.h5"));
}
