// SPDX-License-Identifier: GPL-3.0-or-later
// Export draws what is shown: every choice of a view is in its FigureRequest, or the note of that lists what is left
// out.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QJsonArray>
#include <QLabel>
#include <QMenu>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>

#include "core/figures/make_figure.h"
#include "core/figures/options/figure_arguments.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/table_copy.h"
#include "widgets/views/map/map.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

struct Opened {
    explicit Opened(const std::string& name, std::vector<std::int64_t> lengths = {24, 17}, int analyses = 2) {
        for (int i = 0; i < analyses; ++i) {
            tests::SyntheticAnalysis a;
            a.lengths = lengths;
            a.seed = static_cast<std::uint64_t>(i) + 1;
            a.record.maps = a.record.states = a.record.norms = true;
            const auto path = folder / (std::string(1, static_cast<char>('a' + i)) + ".headscope.h5");
            tests::write_synthetic_analysis(path, a);
            studies.push_back(tests::open_study(desk, path));
        }
        desk.select_study(studies.front()->id());
        desk.select_head(1, 2);
        desk.select_tokens(9, 3);
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(1100, 700);
        view->show();
        settle();
    }
    void settle() {
        tests::settle(desk);
        tests::settle(desk);
    }
    /// The request as one text: the command that makes it, and what it leaves out.
    QString wish() const {
        const auto wish = view->figure();
        if (!wish) return QStringLiteral("none");
        std::vector<std::string> files;
        for (const int id : wish->studies) files.push_back(desk.study(id)->path().filename().string());
        return QString::fromStdString(figures::shell_command(
                   figures::figure_arguments({wish->recipe, wish->options, {}}, files, "o.pdf"))) +
               QStringLiteral(" # ") + wish->note;
    }
    figures::FigureData figure() const {
        const auto wish = view->figure();
        REQUIRE(wish);
        std::vector<std::shared_ptr<store::AnalysisFile>> files;
        for (const int id : wish->studies) files.push_back(store::AnalysisFile::open(desk.study(id)->path()));
        return figures::make_figure(wish->recipe, files, wish->options);
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    std::vector<Study*> studies;
    std::unique_ptr<View> view;
};

/// Choices of a view that are no part of its picture: panels beside it, and how large its parts are.
const std::set<std::string> kNoPicture{
    "overview/columns",                                     // of the table
    "compare/compare_scope", "compare/compare_text_scale",  // of the text page, whose note says that it is left out
    "loss/range",  // of the colored text, which the note says is another figure
};

/// Entries that draw the same as the one chosen at first, and why.
const std::map<std::string, std::string> kSamePicture{
    {"map/map_scale/Square root", "automatic is that for short texts"},
    {"compare/compare_scale/Square root", "automatic is that for short texts"},
    {"compare/compare_sequence/Sequence 0", "the same as in the selection"},
    {"compare/compare_layer/Layer 1", "the same as in the selection"},
    {"compare/compare_head/Head 2", "the same as in the selection"},
};

const figures::HeatMap& cells(const figures::FigureData& figure) {
    return std::get<figures::HeatMap>(figure.panels.at(0).content);
}

}  // namespace

TEST_CASE("Every choice in a view that has a figure changes the figure", "[view][export]") {
    for (const ViewKind* kind : view_kinds()) {
        // More tokens than one window of lines has, and fewer than the next larger one.
        const bool windows = std::string(kind->name) == "lines";
        Opened opened(kind->name, {windows ? 60 : 24, 17});
        if (!opened.view->figure() || !opened.view->figure()->paths.isEmpty()) continue;
        INFO(kind->name);
        for (QComboBox* box : opened.view->findChildren<QComboBox*>()) {
            if (!box->isVisibleTo(opened.view.get()) || !box->isEnabled()) continue;
            INFO(box->objectName().toStdString());
            const std::string control = std::string(kind->name) + "/" + box->objectName().toStdString();
            if (kNoPicture.contains(control)) continue;
            const int chosen = box->currentIndex();
            const QString before = opened.wish();
            const QJsonObject state = opened.view->state();
            for (int index = 0; index < box->count(); ++index) {
                if (index == chosen) continue;
                box->setCurrentIndex(index);
                Q_EMIT box->activated(index);
                opened.settle();
                INFO(box->itemText(index).toStdString() << ": " << opened.wish().toStdString());
                const auto same = kSamePicture.find(control + "/" + box->itemText(index).toStdString());
                if (opened.view->state() != state && opened.view->figure())
                    CHECK((opened.wish() == before) == (same != kSamePicture.end()));
                box->setCurrentIndex(chosen);
                Q_EMIT box->activated(chosen);
                opened.settle();
            }
        }
        CHECK_NOTHROW(opened.figure());
    }
}

TEST_CASE("The sequence, layer and head of a view are those of its figure", "[view][export]") {
    // Parts of the selection that each view shows.
    const std::map<std::string, std::string> shown{{"overview", "sequence"},
                                                   {"all_heads", "sequence"},
                                                   {"map", "sequence layer head"},
                                                   {"lines", "sequence layer"},
                                                   {"on_text", "sequence layer head"},
                                                   {"compare", "sequence layer head"},
                                                   {"loss", "sequence"},
                                                   {"radar", "sequence"},
                                                   {"logits", "sequence"},
                                                   {"states", "sequence"},
                                                   {"mass", "sequence"}};
    for (const auto& [name, parts] : shown) {
        for (const char* part : {"sequence", "layer", "head"}) {
            Opened opened(name);
            INFO(name << ", " << part);
            const QString before = opened.wish();
            REQUIRE(before != "none");
            Selection selection = opened.desk.selection();
            if (part == std::string("sequence")) selection.sequence = 1;
            if (part == std::string("layer")) selection.site = 2;
            if (part == std::string("head")) selection.head = 0;
            opened.desk.select(selection);
            opened.settle();
            INFO(before.toStdString() << "\n" << opened.wish().toStdString());
            if (parts.find(part) != std::string::npos) CHECK(opened.wish() != before);
        }
    }
}

TEST_CASE("A part of a long map is exported with the colors of the whole, as it is shown", "[view][map][export]") {
    Opened opened("map", {300}, 1);
    auto* view = static_cast<MapView*>(opened.view.get());
    CHECK(opened.view->figure()->options.scale == figures::CellScale::logarithmic);
    view->plot()->show_cells({200, 240, 10, 50});
    opened.settle();
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    // A text of 40 tokens would have a square-root scale, on which small weights vanish.
    CHECK(wish->options.scale == figures::CellScale::logarithmic);
    const maps::Cells shown = view->plot()->shown();
    CHECK(wish->options.from_query == shown.q_begin);
    CHECK(wish->options.to_query == shown.q_end);
    CHECK(wish->options.from_key == shown.k_begin);
    CHECK(wish->options.to_key == shown.k_end);
    const auto figure = opened.figure();
    const figures::ColourScale expected = view->look().colours(300, 0);
    CHECK(cells(figure).colours.scale == expected.scale);
    CHECK(cells(figure).colours.minimum == expected.minimum);
    CHECK(cells(figure).colours.maximum == expected.maximum);
    const auto map = opened.studies[0]->map(0, 1, 2);
    REQUIRE(map);
    const auto weights = map->values(shown);
    REQUIRE(cells(figure).values.size() == weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (std::isnan(weights[i]))
            CHECK(std::isnan(cells(figure).values[i]));
        else
            CHECK(cells(figure).values[i] == Approx(weights[i]).margin(1e-6));
    }
    const bool noted = std::any_of(figure.notes.begin(), figure.notes.end(), [](const std::string& note) {
        return note.find("weights below 1e-4 are drawn as 1e-4") != std::string::npos;
    });
    CHECK(noted);
}

TEST_CASE("A part of a map of norms ends at the colors of the whole", "[view][map][export]") {
    Opened opened("map", {24}, 1);
    auto* view = static_cast<MapView*>(opened.view.get());
    MapLook look = view->look();
    look.values = figures::MapValues::norms;
    view->set_look(look);
    opened.settle();
    const double whole = cells(opened.figure()).colours.maximum;
    view->plot()->show_cells({12, 20, 2, 10});
    opened.settle();
    REQUIRE(opened.view->figure()->options.from_query == 12);
    CHECK(cells(opened.figure()).colours.maximum == whole);
    CHECK(whole == Approx(static_cast<double>(opened.studies[0]->computed_map(0, 1, 2, look.values)->most())));
}

TEST_CASE("A part of a difference has the colors of the whole difference", "[view][compare][export]") {
    Opened opened("compare");
    const auto end = [&opened] {
        const auto figure = opened.figure();
        return std::get<figures::HeatMap>(figure.panels.back().content).colours.maximum;
    };
    const double whole = end();
    auto* plot = opened.view->findChild<MapPlot*>(QStringLiteral("left_map"));
    REQUIRE(plot);
    plot->show_cells({18, 24, 0, 6});
    opened.settle();
    REQUIRE(opened.view->figure()->options.from_query == 18);
    CHECK(end() == whole);
}

TEST_CASE("Ctrl+C and the menu of a view copy its figure, or the screen where there is none", "[view][export]") {
    Opened opened("radar");
    QSignalSpy copied(&opened.desk, &Desk::copy_wanted), exported(&opened.desk, &Desk::export_wanted);
    QTest::keyClick(opened.view.get(), Qt::Key_C, Qt::ControlModifier);
    REQUIRE(copied.count() == 1);
    CHECK(copied[0][0].value<FigureRequest>().recipe == "radar");
    CHECK(copied[0][1].toString() == "png");
    QContextMenuEvent wanted(QContextMenuEvent::Mouse, QPoint(20, 20), opened.view->mapToGlobal(QPoint(20, 20)));
    QApplication::sendEvent(opened.view.get(), &wanted);
    auto* menu = opened.view->findChild<QMenu*>(QStringLiteral("view_menu"));
    REQUIRE(menu);
    for (const char* name : {"menu_copy_numbers", "menu_export"}) {
        auto* action = menu->findChild<QAction*>(QLatin1String(name));
        REQUIRE(action);
        CHECK(action->isEnabled());
        action->trigger();
    }
    REQUIRE(copied.count() == 2);
    CHECK(copied[1][1].toString() == "csv");
    CHECK(exported.count() == 1);
    menu->close();

    Opened without("bias");  // these scores have none
    REQUIRE_FALSE(without.view->figure());
    QApplication::clipboard()->clear();
    QSignalSpy none(&without.desk, &Desk::copy_wanted);
    QTest::keyClick(without.view.get(), Qt::Key_C, Qt::ControlModifier);
    CHECK(none.count() == 0);
    CHECK_FALSE(QApplication::clipboard()->image().isNull());
    CHECK_FALSE(without.view->copy_numbers());
}

TEST_CASE("Every view has copies and Export in its menu", "[view][export]") {
    for (const ViewKind* kind : view_kinds()) {
        INFO(kind->name);
        Opened opened(kind->name, {24}, 1);
        QContextMenuEvent wanted(QContextMenuEvent::Keyboard, QPoint(20, 20), opened.view->mapToGlobal(QPoint(20, 20)));
        QApplication::sendEvent(opened.view.get(), &wanted);
        const auto menus = opened.view->findChildren<QMenu*>();
        const bool found = std::any_of(menus.begin(), menus.end(), [](const QMenu* menu) {
            const auto has = [menu](const char* name) {
                return menu->findChild<QAction*>(QLatin1String(name)) != nullptr;
            };
            return has("menu_copy_picture") && has("menu_copy_numbers") && has("menu_export");
        });
        CHECK(found);
        for (QMenu* menu : menus) menu->close();
    }
}

TEST_CASE("Ctrl+C in a list copies the chosen rows with their header, or all of them", "[view][export]") {
    Opened opened("compare");
    for (auto* button : opened.view->findChildren<QToolButton*>(QStringLiteral("compare_heads"))) button->click();
    opened.settle();
    auto* list = opened.view->findChild<QTableView*>(QStringLiteral("compare_list"));
    REQUIRE(list);
    REQUIRE(list->model()->rowCount() > 2);
    list->clearSelection();
    QTest::keyClick(list, Qt::Key_C, Qt::ControlModifier);
    QStringList lines = QApplication::clipboard()->text().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    CHECK(lines.size() == list->model()->rowCount() + 1);
    CHECK(lines[0].split(QLatin1Char('\t')).size() == list->model()->columnCount());
    list->selectRow(1);
    opened.settle();
    QTest::keyClick(list, Qt::Key_C, Qt::ControlModifier);
    lines = QApplication::clipboard()->text().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1].section(QLatin1Char('\t'), 1, 1) == list->model()->index(1, 1).data().toString());
}

TEST_CASE("Names that the user gives are in the figure, in its command and in what is compared", "[view][export]") {
    Opened opened("radar");
    opened.desk.rename_study(opened.studies[1]->id(), QStringLiteral("without 3.1, 5.0"));
    opened.view->restore({{"with", QJsonArray{QString::fromStdString(opened.studies[1]->path().string())}}});
    opened.settle();
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    REQUIRE(wish->studies.size() == 2);
    CHECK(wish->options.names == std::vector<std::string>{"", "without 3.1, 5.0"});
    const auto figure = opened.figure();
    CHECK(figure.notes[0].find("without 3.1, 5.0") != std::string::npos);
    CHECK(figure.notes[0].find("synthetic,") != std::string::npos);
    ExportDialog dialog(&opened.desk, "/bin/false");
    dialog.show_wish(*wish);
    CHECK(dialog.command().contains(QStringLiteral(R"('--names' ',without)")) == false);
    CHECK(dialog.command().contains(QStringLiteral(R"(--names ',without 3.1\, 5.0')")));
    Opened compared("compare");
    compared.desk.rename_study(compared.studies[1]->id(), QStringLiteral("pruned"));
    compared.settle();
    CHECK(compared.view->findChild<QLabel*>(QStringLiteral("right_map_title"))->toolTip().contains("pruned"));
    CHECK(compared.figure().title.find("pruned minus synthetic") != std::string::npos);
}

TEST_CASE("The preview, the copy, the file and the command are one figure", "[view][export]") {
    Opened opened("map", {300}, 1);
    static_cast<MapView*>(opened.view.get())->plot()->show_cells({200, 240, 10, 50});
    opened.settle();
    // In the program's place: keeps what it was called with, a line an argument.
    const auto program = test::write_file(opened.folder / "program", R"(#!/bin/sh
printf '%s\n' "$@" > "$0.$$.part" && mv "$0.$$.part" "$0.$$.said"
)");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto said = [&] {
        std::set<std::vector<std::string>> calls;
        for (const auto& entry : std::filesystem::directory_iterator(opened.folder.path())) {
            if (entry.path().extension() != ".said") continue;
            std::vector<std::string> words;
            std::istringstream lines(test::read_file(entry.path()));
            for (std::string line; std::getline(lines, line);) words.push_back(line);
            // The preview has the screen's dots, and each call its own output.
            if (const auto dots = std::find(words.begin(), words.end(), "--dpi"); dots != words.end())
                words.erase(dots, dots + 2);
            words.pop_back();
            calls.insert(words);
        }
        return calls;
    };
    const auto count = [&] {
        int files = 0;
        for (const auto& entry : std::filesystem::directory_iterator(opened.folder.path()))
            files += entry.path().extension() == ".said" ? 1 : 0;
        return files;
    };
    const auto wish = opened.view->figure();
    REQUIRE(wish);
    ExportDialog dialog(&opened.desk, program.string());
    dialog.show_wish(*wish);
    dialog.show();
    REQUIRE(QTest::qWaitFor([&] { return count() == 1; }, 20'000));
    dialog.copy(*wish, QStringLiteral("png"));
    REQUIRE(QTest::qWaitFor([&] { return count() == 2; }, 20'000));
    const auto calls = said();
    REQUIRE(calls.size() == 1);
    std::vector<std::string> command =
        figures::figure_arguments(dialog.request(), {opened.studies[0]->path().string()}, "attention.pdf");
    CHECK(dialog.command().toStdString() == figures::shell_command(command));
    command.pop_back();
    CHECK(*calls.begin() == command);
    const auto has = [&](const char* option, const char* value) {
        const auto at = std::find(command.begin(), command.end(), option);
        return at != command.end() && at + 1 != command.end() && *(at + 1) == value;
    };
    CHECK(has("--scale", "logarithmic"));
    CHECK(has("--from-query", std::to_string(*wish->options.from_query).c_str()));
    CHECK(has("--to-key", std::to_string(*wish->options.to_key).c_str()));
}
