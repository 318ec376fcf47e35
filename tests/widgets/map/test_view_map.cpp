// SPDX-License-Identifier: GPL-3.0-or-later
// The map of one head: its values, sequences, pairs and chunk types, figure and state, and notes on what is missing.
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QJsonArray>
#include <QJsonObject>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSignalSpy>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/store/analysis/analysis_writer.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_recurrent.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/map/map_fixture.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/theme.h"
#include "widgets/views/map/map.h"
#include "widgets/views/map/map_words.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::weights_of, tests::with_maps;
using Opened = tests::OpenedMap;

TEST_CASE("A pair's texts have coloured edges, and their means are shown", "[view][map]") {
    ensure_application();
    test::TemporaryFolder folder;
    auto a = with_maps();
    auto header = tests::synthetic_header(a);
    auto& tokens = header.sequences.at(0);
    tokens.regions.assign(24, 1);
    std::fill(tokens.regions.begin() + 10, tokens.regions.end(), 2);
    tokens.regions[0] = tokens.regions[23] = 0;
    tokens.types.assign(24, 0);
    {
        store::AnalysisWriter writer(folder / "pair.headscope.h5", header);
        const std::vector<double> means(static_cast<std::size_t>(header.sites.at(1).heads) * 9, 0.25);
        writer.write_region_means(0, 1, means);
        for (std::int32_t layer = 0; layer < a.layers; ++layer) tests::write_synthetic_layer(writer, a, 0, layer);
        tests::write_synthetic_output(writer, a, 0);
        writer.publish();
    }
    Desk desk;
    tests::open_study(desk, folder / "pair.headscope.h5");
    desk.select_head(1, 2);
    MapView view(&desk, nullptr);
    view.resize(900, 650);
    view.show();
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    CHECK(view.plot()->content().query_regions == tokens.regions);
    CHECK(view.findChild<QLabel*>("map_notice")->text().contains("A→B 0.25"));
    const Theme theme = desk.theme();
    const QImage image = view.plot()->grab().toImage();
    const auto shows = [&](const QColor& colour) {
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x)
                if (image.pixelColor(x, y) == colour) return true;
        return false;
    };
    CHECK(shows(region_colour(1, theme)));
    CHECK(shows(region_colour(2, theme)));
}

TEST_CASE("Below the keys of NAtS-L are the types of their chunks", "[view][map]") {
    ensure_application();
    test::TemporaryFolder folder;
    tests::write_recurrent_analysis(folder / "types.headscope.h5");
    Desk desk;
    tests::open_study(desk, folder / "types.headscope.h5");
    desk.select_head(tests::kSoftmaxBranch, 1);
    MapView view(&desk, nullptr);
    view.resize(900, 650);
    view.show();
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    // The second linear head's first two chunks of 8 tokens are softmax.
    std::vector<std::int32_t> wanted(24, 0);
    std::fill(wanted.begin() + 16, wanted.end(), 1);
    CHECK(view.plot()->content().key_types == wanted);
    CHECK(view.findChild<QLabel*>("map_notice")->text().contains("S softmax, L linear"));
    const QImage image = view.plot()->grab().toImage();
    const auto shows = [&](const QColor& colour) {
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x)
                if (image.pixelColor(x, y) == colour) return true;
        return false;
    };
    CHECK(shows(type_colour(0, desk.theme())));
    CHECK(shows(type_colour(1, desk.theme())));
    desk.select_head(tests::kSoftmaxSite, 0);
    for (int i = 0; i < 3; ++i) tests::settle(desk);
    CHECK(view.plot()->content().key_types.empty());
}

TEST_CASE("Every choice of values, scale and pooling draws a complete map", "[view][map]") {
    Opened opened(with_maps(300));
    std::vector<std::uint64_t> maps;
    QImage before;
    for (const auto values : {MapLook::Values::weights, MapLook::Values::logits}) {
        for (const auto scale : {figures::CellScale::by_length, figures::CellScale::linear,
                                 figures::CellScale::square_root, figures::CellScale::row_rank}) {
            for (const auto pooling : {figures::Pooling::maximum, figures::Pooling::mean}) {
                opened.view->set_look({values, scale, pooling});
                tests::settle(opened.desk);
                tests::settle(opened.desk);
                INFO(static_cast<int>(values) << static_cast<int>(scale) << static_cast<int>(pooling));
                CHECK(opened.plot().complete());
                if (pooling == figures::Pooling::maximum) maps.push_back(opened.plot().content().map);
                const QImage image = opened.view->grab().toImage();
                CHECK(image != before);
                before = image;
            }
        }
    }
    // Scales share tiles; ranks of weights and of logits are the same.
    CHECK(maps[0] == maps[1]);
    CHECK(maps[4] == maps[5]);
    CHECK(maps[0] != maps[4]);
    CHECK(maps[3] == maps[7]);
}

TEST_CASE("Without maps the thumbnail is shown, and a run with maps is offered", "[view][map]") {
    Opened opened(tests::SyntheticAnalysis{});
    CHECK(opened.words("map_notice").contains("No maps were recorded"));
    CHECK(opened.plot().content().map == 0);
    CHECK(opened.plot().content().thumbnail_rows == 24);
    CHECK(std::isnan(opened.plot().content().thumbnail[1]));
    int asked = 0;
    QObject::connect(&opened.desk, &Desk::run_wanted, [&](const RunRequest& wish) {
        ++asked;
        CHECK(wish.maps);
        CHECK(wish.study == opened.study->id());
    });
    opened.part<QPushButton>("map_run_again")->click();
    CHECK(asked == 1);
    const auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "thumbnails");
}

TEST_CASE("The thumbnail of a sequence that is shorter than others is its own part of it", "[view][map]") {
    tests::SyntheticAnalysis a;
    a.lengths = {40, 24};
    Opened opened(a);
    Selection selection = opened.desk.selection();
    selection.sequence = 1;
    opened.desk.select(selection);
    tests::settle(opened.desk);
    const MapContent& content = opened.plot().content();
    CHECK(content.queries == 24);
    REQUIRE(content.thumbnail_rows == 24);
    REQUIRE(content.thumbnail_columns == 24);
    for (std::size_t q = 0; q < 24; ++q)
        for (std::size_t k = 0; k < 24; ++k) CHECK(std::isnan(content.thumbnail[q * 24 + k]) == (k > q));
}

TEST_CASE("All sequences are one map, their mean, with the deviation at a cell", "[view][map]") {
    auto a = with_maps();
    a.lengths = {24, 30};
    Opened opened(a);
    CHECK(opened.words("map_title") == "Layer 1, head 2, sequence 0");
    const auto weight = [&](std::int64_t sequence) {
        REQUIRE(Opened::becomes([&] { return opened.study->map(sequence, 1, 2).value != nullptr; }));
        return double{opened.study->map(sequence, 1, 2)->values({20, 21, 3, 4}).front()};
    };
    const double first = weight(0), second = weight(1);
    Selection selection = opened.desk.selection();
    selection.sequence.reset();
    selection.query = 20;
    selection.key = 3;
    opened.desk.select(selection);
    REQUIRE(Opened::becomes([&] { return opened.words("map_title") == "Layer 1, head 2, mean over 2 sequences"; }));
    CHECK(opened.words("map_notice").contains("24 to 30 tokens"));
    CHECK(opened.plot().content().queries == 30);
    CHECK(opened.plot().content().query_labels.empty());
    REQUIRE(Opened::becomes([&] { return opened.words("map_cell").contains("2 of 2 sequences"); }));
    const maps::PairReading expected{static_cast<float>((first + second) / 2), 0,
                                     static_cast<float>(std::abs(first - second) / std::sqrt(2)), 0, 2};
    const QString weight_words = opened.words("map_cell").section(QStringLiteral("weight "), 1).section(' ', 0, 2);
    const QStringList parts = weight_words.split(QStringLiteral(" ± "));
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].toDouble() == Approx(double{expected.weight}).epsilon(1e-3));
    CHECK(parts[1].toDouble() == Approx(double{expected.weight_deviation}).epsilon(0.1));
    CHECK(opened.view->jump("7", true));
    CHECK_FALSE(opened.view->jump("the", true));
    const auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.all_sequences);
    CHECK_FALSE(figure->options.sequence);
    selection.query = 27;
    opened.desk.select(selection);
    CHECK(Opened::becomes([&] { return opened.words("map_cell").contains("1 of 2 sequences"); }));
    selection.sequence = 1;
    opened.desk.select(selection);
    REQUIRE(Opened::becomes([&] { return opened.words("map_title") == "Layer 1, head 2, sequence 1"; }));
    CHECK_FALSE(opened.part<QLabel>("map_notice")->isVisible());
    CHECK(opened.plot().content().queries == 30);
    CHECK(opened.plot().shown().queries() == 30);
}

TEST_CASE("Without maps all sequences show the thumbnail of one, with a note", "[view][map]") {
    tests::SyntheticAnalysis a;
    a.lengths = {24, 24};
    Opened opened(a);
    Selection selection = opened.desk.selection();
    selection.sequence.reset();
    opened.desk.select(selection);
    tests::settle(opened.desk);
    CHECK(opened.words("map_title") == "Layer 1, head 2, sequence 0");
    CHECK(opened.words("map_notice").contains("one sequence"));
}

TEST_CASE("An encoder's map has no future to hide", "[view][map]") {
    auto a = with_maps();
    a.causal = false;
    Opened opened(a);
    CHECK_FALSE(std::isnan(opened.plot().content().thumbnail[1]));
    opened.desk.select_tokens(2, 20);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("weight"));
}

TEST_CASE("What is shown is a figure, a state, and restored from it", "[view][map]") {
    Opened opened;
    auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->recipe == "attention");
    CHECK(figure->options.layer == 1);
    CHECK(figure->options.head == 2);
    CHECK_FALSE(figure->options.from_query);
    opened.view->set_look({MapLook::Values::weights, figures::CellScale::row_rank, figures::Pooling::mean});
    opened.view->set_profiles(false);
    opened.desk.select_tokens(20, 20);  // beside what is shown then
    tests::settle(opened.desk);
    opened.plot().show_cells({4, 12, 2, 10});
    figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.scale == figures::CellScale::row_rank);
    CHECK(figure->options.from_query == 4);
    CHECK(figure->options.to_key == 10);
    CHECK(figure->options.pooling == figures::Pooling::mean);
    CHECK(figure->options.values == figures::MapValues::weights);
    const QJsonObject state = opened.view->state();
    opened.view->set_look({MapLook::Values::logits, figures::CellScale::linear, figures::Pooling::mean});
    CHECK(opened.view->figure()->options.values == figures::MapValues::logits);
    opened.view->restore(state);
    tests::settle(opened.desk);

    MapView other(&opened.desk, nullptr);
    other.resize(900, 650);
    other.restore(state);
    CHECK(other.state() == state);
    other.show();
    tests::settle(opened.desk);
    tests::settle(opened.desk);
    CHECK(other.state() == state);
    CHECK(other.plot()->shown().q_begin == 4);
    CHECK(other.plot()->shown().k_end == 10);
    // A wrong state is ignored.
    QJsonObject odd;
    odd["scale"] = "no such scale";
    odd["cells"] = QJsonArray{-1, 4, 9};
    odd["profiles"] = 3;
    other.restore(odd);
    CHECK(other.look() == opened.view->look());
}

TEST_CASE("What is shown is copied as a table, up to a limit", "[view][map]") {
    Opened opened;
    opened.plot().show_cells({4, 8, 2, 6});
    QSignalSpy told(&opened.desk, &Desk::told);
    opened.view->copy_shown();
    REQUIRE(Opened::becomes([&] { return told.count() == 1; }));
    const QStringList lines = QApplication::clipboard()->text().split("\r\n", Qt::SkipEmptyParts);
    CHECK(lines.front() == "query,key,query_token,key_token,weight,logit");
    CHECK(lines.size() == 1 + 16 - 1);  // key 5 lies in the future of query 4
    CHECK(lines[1].startsWith("4,2,"));
    CHECK(lines[1].split(',')[4].toDouble() == Approx(weights_of(opened)[4 * 24 + 2]).epsilon(1e-5));
    QContextMenuEvent event(QContextMenuEvent::Keyboard, QPoint(50, 50), opened.view->mapToGlobal(QPoint(50, 50)));
    QApplication::sendEvent(opened.view.get(), &event);
    auto* menu = opened.view->findChild<QMenu*>("map_menu");
    REQUIRE(menu);
    CHECK(menu->actions().size() >= 5);
    menu->close();
}

TEST_CASE("A map that goes while its values are read takes nothing with it", "[view][map]") {
    Opened opened(with_maps(300));
    for (int i = 0; i < 20; ++i) {
        opened.desk.select_head(i % 3, i % 4);
        opened.desk.select_tokens(i * 10, i * 3);
        QApplication::processEvents();
    }
    opened.desk.remove(opened.study->id());
    tests::settle(opened.desk);
    CHECK_FALSE(opened.view->figure());
    CHECK(opened.part<QLabel>("map_cell") != nullptr);
    opened.view.reset();
    tests::settle(opened.desk);
}

TEST_CASE("Blocks of a thumbnail that lie in the future are none", "[view][map]") {
    std::vector<float> thumbnail(9, 0.0F);
    hide_future(thumbnail, 3, 3, 8, 8);
    // Block rows begin at 0, 3, 6.
    for (std::size_t i = 0; i < 9; ++i) CHECK(std::isnan(thumbnail[i]) == (i % 3 > i / 3));
}

TEST_CASE("The map shows norms and rollout, or weights and why", "[map][rollout]") {
    auto made = with_maps();
    made.record.norms = GENERATE(false, true);
    Opened opened(made);
    const auto show = [&](MapLook::Values values) {
        opened.view->set_look({values, figures::CellScale::linear, figures::Pooling::maximum});
        for (int i = 0; i < 3; ++i) tests::settle(opened.desk);  // the map, the cell, its description
    };
    show(MapLook::Values::rollout);
    CHECK(opened.words("map_title") == "Layer 1, all heads");
    auto figure = opened.view->figure();
    REQUIRE(figure);
    CHECK(figure->options.values == figures::MapValues::rollout);
    CHECK_FALSE(figure->options.head);
    opened.desk.select_tokens(10, 3);
    tests::settle(opened.desk);
    CHECK(opened.words("map_cell").contains("rollout"));
    const QJsonObject state = opened.view->state();
    MapLook look;
    look.restore(state);
    CHECK(look.values == MapLook::Values::rollout);
    show(MapLook::Values::norms);
    auto* again = opened.part<QPushButton>("map_run_again");
    CHECK(again->isHidden() == made.record.norms);
    figure = opened.view->figure();
    REQUIRE(figure);
    if (made.record.norms) {
        CHECK(opened.words("map_cell").contains("norm"));
        CHECK(figure->options.values == figures::MapValues::norms);
        CHECK(figure->options.head == 2);
        show(MapLook::Values::layer_norms);
        CHECK(opened.words("map_title") == "Layer 1, all heads");
    } else {
        CHECK(opened.words("map_notice").contains("not recorded"));
        CHECK(figure->options.values == figures::MapValues::weights);
    }
}
