// SPDX-License-Identifier: GPL-3.0-or-later
// Views of models with recurrent layers: implicit matrices, types of tokens, weights of branches.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/text/banner.h"
#include "widgets/text/text_area.h"
#include "widgets/views/compare/compare.h"
#include "widgets/views/compare/maps_page.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

tests::RecurrentSample nothing_recorded() {
    tests::RecurrentSample sample;
    sample.record = {};
    sample.record.maps = true;
    return sample;
}

struct Shown {
    explicit Shown(const char* kind, std::int64_t site, const tests::RecurrentSample& sample = {}) {
        tests::write_recurrent_analysis(folder / "a.headscope.h5", sample);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind(kind).make(&desk, nullptr));
        view->resize(900, 600);
        view->show();
        desk.select_head(site, 1);
        settle();
    }
    void settle() {
        tests::settle(desk);
        QTest::qWait(20);
        tests::settle(desk);
    }
    void choose(const char* name, const char* value) {
        auto* box = view->findChild<QComboBox*>(QLatin1String(name));
        REQUIRE(box);
        const int place = std::max(box->findData(QLatin1String(value)), box->findText(QLatin1String(value)));
        REQUIRE(place >= 0);
        box->setCurrentIndex(place);
        Q_EMIT box->activated(place);  // as a hand does it
        settle();
    }
    /// The run that a press on a button requests.
    RunRequest wish(const char* button) {
        QSignalSpy wanted(&desk, &Desk::run_wanted);
        auto* found = view->findChild<QPushButton*>(QLatin1String(button));
        REQUIRE(found);
        QTest::mouseClick(found, Qt::LeftButton);
        REQUIRE(wanted.count() == 1);
        return wanted[0][0].value<RunRequest>();
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Map of a recurrent layer: its implicit matrix, or the offer to record it", "[views][recurrent]") {
    Shown shown("map", tests::kRecurrentSite);
    const auto* plot = shown.view->findChild<MapPlot*>();
    REQUIRE(plot);
    CHECK(plot->content().map != 0);
    CHECK(plot->content().queries == 24);
    const auto figure = shown.view->figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "attention");
    CHECK(figure->options.layer == 1);
    CHECK(figure->options.values == figures::MapValues::weights);  // which the recipe knows for what they are

    Shown bare("map", tests::kRecurrentSite, nothing_recorded());
    CHECK(bare.wish("notice_action").implicit);
}

TEST_CASE("Map of a recurrent layer in the mean over sequences, and of words", "[views][recurrent]") {
    Shown shown("map", tests::kRecurrentSite);
    const auto* plot = shown.view->findChild<MapPlot*>();
    const auto one = plot->content().map;
    Selection all = shown.desk.selection();
    all.sequence.reset();
    shown.desk.select(all);
    shown.settle();
    CHECK(plot->content().map != 0);
    CHECK(plot->content().map != one);
    CHECK(plot->content().thumbnail.empty());
    REQUIRE(shown.view->figure());
    CHECK(shown.view->figure()->options.all_sequences);

    all.sequence = 0;
    shown.desk.select(all);
    shown.choose("map_units", "Words");
    CHECK(plot->content().map != 0);
    CHECK(plot->content().queries < 24);
    REQUIRE(shown.view->figure());
    CHECK(shown.view->figure()->options.units == figures::Units::words);
}

TEST_CASE("Lines and text of a recurrent layer", "[views][recurrent]") {
    Shown bare("lines", tests::kRecurrentSite, nothing_recorded());
    CHECK(bare.wish("notice_action").implicit);
    Shown lines("lines", tests::kLinearBranch);
    const auto drawn = lines.view->figure();
    REQUIRE(drawn);
    CHECK(drawn->options.tower == figures::Tower::linear);

    Shown without("on_text", tests::kRecurrentSite, nothing_recorded());
    CHECK(without.wish("banner_action").implicit);
    Shown text("on_text", tests::kRecurrentSite);
    text.desk.select_tokens(20, std::nullopt);
    text.settle();
    const auto matrix = tests::synthetic_implicit(4, 24, 1 + tests::kRecurrentSite);
    const auto& values = text.view->findChild<TokenTextArea*>()->values();
    REQUIRE(values.size() == 24);
    CHECK(values[7] == matrix[static_cast<std::size_t>((1 * 24 + 20) * 24 + 7)]);
    CHECK(text.view->findChild<TokenTextArea*>()->scale().map == figures::ColourMap::diverging);
}

TEST_CASE("Token types: fraction, chunks; weights of branches, offered where they are not there",
          "[views][recurrent]") {
    Shown shown("token_types", tests::kLinearBranch);
    REQUIRE(shown.view->findChild<FigureView*>()->figure());
    CHECK(shown.view->figure()->recipe == "token-types");
    CHECK_FALSE(shown.view->figure()->options.layer);
    shown.choose("of", "chunks");
    CHECK(shown.view->figure()->options.layer == 0);

    Shown weights("branch_weights", tests::kSoftmaxBranch);
    REQUIRE(weights.view->findChild<FigureView*>()->figure());
    CHECK(weights.view->findChild<FigureView*>()->figure()->panels.size() == 2);
    Shown bare("branch_weights", tests::kSoftmaxBranch, nothing_recorded());
    CHECK(bare.wish("notice_action").branches);
}

TEST_CASE("Compared recurrent layers are implicit matrices and their signed difference", "[view][compare][recurrent]") {
    Shown shown("compare", tests::kRecurrentSite);
    auto* view = static_cast<CompareView*>(shown.view.get());
    const auto compare_with = [&](std::int64_t site, std::int64_t head) {
        view->set_choice({0, {}, site, head});
        shown.settle();
        shown.settle();
    };
    CompareMaps* maps = view->maps();
    const auto read = [&](std::int64_t site, std::int64_t head) {
        shown.study->weights_map(0, site, head);
        shown.settle();
        const auto map = shown.study->weights_map(0, site, head).value;
        REQUIRE(map);
        return map->values({0, map->queries(), 0, map->keys()});
    };
    const auto reach = [&](const std::vector<float>& a, const std::vector<float>& b) {
        double most = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!std::isnan(a[i])) most = std::max(most, std::abs(static_cast<double>(b[i] - a[i])));
        return most;
    };
    compare_with(tests::kRecurrentSite, 2);
    for (const auto which : {CompareMaps::left, CompareMaps::right, CompareMaps::difference})
        CHECK(maps->plot(which)->content().map != 0);
    CHECK(maps->reach() == Approx(reach(read(tests::kRecurrentSite, 1), read(tests::kRecurrentSite, 2))));
    // Weights of softmax attention beside them.
    compare_with(tests::kSoftmaxSite, 1);
    CHECK(maps->plot(CompareMaps::difference)->content().map != 0);
    CHECK(maps->reach() == Approx(reach(read(tests::kRecurrentSite, 1), read(tests::kSoftmaxSite, 1))));
    CHECK(maps->findChild<Banner*>()->text().contains(QStringLiteral("signed coefficients")));
}

TEST_CASE("Compare offers to record implicit matrices", "[view][compare][recurrent]") {
    Shown shown("compare", tests::kRecurrentSite, nothing_recorded());
    static_cast<CompareView*>(shown.view.get())->set_choice({0, {}, tests::kRecurrentSite, 2});
    shown.settle();
    QSignalSpy wanted(&shown.desk, &Desk::run_wanted);
    static_cast<CompareView*>(shown.view.get())
        ->maps()
        ->findChild<QPushButton*>(QStringLiteral("banner_action"))
        ->click();
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().implicit);
    CHECK_FALSE(wanted[0][0].value<RunRequest>().maps);
    CHECK_FALSE(shown.view->figure());
}
