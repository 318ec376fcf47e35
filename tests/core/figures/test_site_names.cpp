// SPDX-License-Identifier: GPL-3.0-or-later
// Every figure names the sites of a model with NAtS-L layers by the same function.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/site_name.h"
#include "core/figures/make_figure.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using namespace headscope::figures;

namespace {

using Names = std::set<std::string>;

std::string unknown(const Names& known, const std::vector<std::string>& found) {
    for (const auto& name : found)
        if (!known.contains(name)) return name;
    return "";
}

std::vector<std::string> tick_labels(const Axis& axis) {
    std::vector<std::string> labels;
    for (const auto& tick : axis.ticks) labels.push_back(tick.label);
    return labels;
}

}  // namespace

TEST_CASE("Every figure of analyses names sites alike", "[figures][site]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_recurrent_analysis(path, {});
    const auto file = store::AnalysisFile::open(path);
    const auto& sites = file->header().sites;
    Names labels, titles;
    for (std::int64_t s = 0; s < std::ssize(sites); ++s) {
        labels.insert(site_label(sites, s));
        titles.insert(site_title(sites, s));
    }
    REQUIRE(labels == Names{"0 softmax", "0 linear", "1", "2", "3"});
    Names tables, axes;
    for (const Recipe* one : recipes()) {
        const Recipe& recipe = *one;
        if (recipe.of_analyses == nullptr) continue;
        INFO(recipe.name);
        FigureData figure;
        try {
            figure = make_figure(recipe.name, std::vector{file}, {});
        } catch (const Error&) {  // of what this file has not
            continue;
        }
        const Table table = figure.table();
        for (const auto& column : table.columns) {
            if (column.name != "site") continue;
            tables.insert(recipe.name);
            CHECK(unknown(labels, std::get<std::vector<std::string>>(column.values)) == "");
        }
        if (recipe.name == "branch-weights" || recipe.name == "experts") continue;  // of layers, not of sites
        for (const auto& panel : figure.panels) {
            for (const Axis* axis : {&panel.x, &panel.y}) {
                if (axis->label != "layer" || axis->ticks.empty()) continue;
                axes.insert(recipe.name);
                CHECK(unknown(labels, tick_labels(*axis)) == "");
            }
            if (const auto* curves = std::get_if<Curves>(&panel.content); curves && recipe.name == "states")
                for (const auto& curve : curves->curves) CHECK(titles.contains(curve.name));
        }
    }
    CHECK(tables.size() >= 5);
    CHECK(axes.size() >= 3);
}

TEST_CASE("Titles of one site's figures name its branch", "[figures][site]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    tests::write_recurrent_analysis(path, {});
    const auto file = store::AnalysisFile::open(path);
    FigureOptions options;
    options.layer = 0;
    options.head = 1;
    for (const char* recipe : {"attention", "lines", "text"}) {
        INFO(recipe);
        FigureOptions one = options;
        one.tower = Tower::linear;
        if (recipe == std::string("text")) one.query = 3;
        CHECK(make_figure(recipe, std::vector{file}, one).title.find("layer 0, linear branch") != std::string::npos);
        one.tower = Tower::softmax;
        CHECK(make_figure(recipe, std::vector{file}, one).title.find("layer 0, softmax branch") != std::string::npos);
    }
    // Both branches: the title names the layer, each panel its branch.
    const auto both = make_figure("attention", std::vector{file}, options);
    REQUIRE(both.panels.size() == 2);
    CHECK(both.panels[0].title == "layer 0, softmax branch");
    CHECK(both.panels[1].title == "layer 0, linear branch");
}
