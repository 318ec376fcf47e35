// SPDX-License-Identifier: GPL-3.0-or-later
// Panels of the window: figures as forms and files, commands by name, the start page, undo.
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/process/worker.h"
#include "core/figures/options/figure_arguments.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/widgets/child.h"
#include "widgets/desk/history.h"
#include "widgets/panels/command_palette.h"
#include "widgets/panels/figure_form.h"
#include "widgets/panels/figure_maker.h"
#include "widgets/panels/start_page.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;

TEST_CASE("A figure's form says what the command line says", "[panels][form]") {
    ensure_application();
    FigureForm form;
    figures::FigureRequest request;
    request.recipe = "attention";
    request.options.layer = 2;
    request.options.head = 1;
    request.style.width_mm = 85;
    form.set_request(request);
    CHECK(form.request() == request);
    child<QComboBox>(form, "export_theme")->setCurrentText(QStringLiteral("dark"));
    Q_EMIT child<QComboBox>(form, "export_theme")->activated(child<QComboBox>(form, "export_theme")->currentIndex());
    CHECK(form.request().style.dark);
    CHECK(form.request().options.layer == 2);
    auto* width = child<QLineEdit>(form, "export_width");
    CHECK(width->text() == "85");
    QTest::keyClicks(width, QStringLiteral("x"));
    CHECK_FALSE(form.problem().isEmpty());
    CHECK(form.request().style.width_mm == 85);
    QTest::keyClick(width, Qt::Key_Backspace);
    CHECK(form.problem().isEmpty());
    const auto words = figures::figure_arguments(form.request(), {"a.h5"}, "o.pdf");
    CHECK(std::find(words.begin(), words.end(), "--theme") != words.end());
}

TEST_CASE("A page that differs from the window shows a note, and one click changes it", "[panels][form]") {
    ensure_application();
    FigureForm form;
    figures::FigureRequest request;
    request.recipe = "attention";
    form.set_request(request);
    auto* same = child<QToolButton>(form, "export_as_window");
    CHECK(same->parentWidget()->isHidden());
    form.set_dark_window(true);
    CHECK_FALSE(same->parentWidget()->isHidden());
    CHECK(child<QLabel>(form, "export_page_note")->text().contains(QStringLiteral("as papers are")));
    QSignalSpy changed(&form, &FigureForm::changed);
    same->click();
    CHECK(changed.count() == 1);
    CHECK(form.request().style.dark);
    CHECK(child<QComboBox>(form, "export_theme")->currentText() == "dark");
    CHECK(same->parentWidget()->isHidden());
}

TEST_CASE("The palette finds a command by its words in any order", "[panels][palette]") {
    ensure_application();
    CHECK(CommandPalette::score(QStringLiteral("Export a figure"), QStringLiteral("figure exp")) > 0);
    CHECK(CommandPalette::score(QStringLiteral("Export a figure"), QStringLiteral("figure undo")) < 0);
    CHECK(CommandPalette::score(QStringLiteral("Run"), QStringLiteral("ru")) >
          CommandPalette::score(QStringLiteral("Redo the run"), QStringLiteral("ru")));
    QAction first(QStringLiteral("&Dark")), second(QStringLiteral("Light"));
    QSignalSpy done(&first, &QAction::triggered);
    CommandPalette palette({&second, &first});
    auto* field = child<QLineEdit>(palette, "palette_field");
    QTest::keyClicks(field, QStringLiteral("dark"));
    QTest::keyClick(field, Qt::Key_Return);
    QApplication::processEvents();
    CHECK(done.count() == 1);
}

TEST_CASE("What is recent fits the list, however long its path", "[panels][start]") {
    ensure_application();
    StartPage page;
    page.resize(800, 500);
    page.show();
    auto* list = child<QListWidget>(page, "start_recent");
    CHECK_FALSE(list->isVisible());  // a place to drop things is there instead
    RecentItem gone;
    gone.path = QStringLiteral("/a/") + QString(300, QLatin1Char('b'));
    gone.name = QStringLiteral("gone");
    gone.missing = true;
    page.set_recent({gone});
    QApplication::processEvents();
    CHECK(list->isVisible());
    CHECK(list->visualItemRect(list->item(0)).width() <= list->viewport()->width());
}

TEST_CASE("Recent items that are gone are marked and do not open", "[panels][start]") {
    ensure_application();
    StartPage page;
    RecentItem here, gone;
    here.path = QStringLiteral("/here");
    here.name = QStringLiteral("here");
    gone.path = QStringLiteral("/gone");
    gone.name = QStringLiteral("gone");
    gone.missing = true;
    page.set_recent({here, gone});
    auto* list = child<QListWidget>(page, "start_recent");
    REQUIRE(list->count() == 2);
    CHECK(list->item(1)->text().contains(QStringLiteral("missing")));
    QSignalSpy opened(&page, &StartPage::path_wanted);
    Q_EMIT list->itemActivated(list->item(1));
    CHECK(opened.count() == 0);
    Q_EMIT list->itemActivated(list->item(0));
    CHECK(opened.count() == 1);
}

TEST_CASE("Undo goes back a step a pause, redo forward, a change cuts what was ahead", "[panels][history]") {
    ensure_application();
    int value = 0;
    History history(
        [&] {
            return QJsonObject{{"value", value}};
        },
        [&](const QJsonObject& state) { value = state["value"].toInt(); });
    history.begin();
    const auto change = [&](int to) {
        value = to;
        history.note();
    };
    change(1);
    change(2);  // one step: nothing rested in between
    REQUIRE(QTest::qWaitFor([&] { return history.can_undo(); }, 20'000));
    change(3);
    history.undo();  // what has not rested is remembered first
    CHECK(value == 2);
    history.undo();
    CHECK(value == 0);
    CHECK_FALSE(history.can_undo());
    history.redo();
    CHECK(value == 2);
    change(9);
    REQUIRE(QTest::qWaitFor([&] { return !history.can_redo(); }, 20'000));
    history.undo();
    CHECK(value == 2);
}

TEST_CASE("A figure that is being written is written though the window ends, a preview is not made", "[panels]") {
    ensure_application();
    const test::TemporaryFolder folder;
    // Stands for the program: makes the last file of its arguments once a ".go" file exists.
    const auto program = test::write_file(folder / "program", R"(#!/bin/sh
for last; do :; done
while [ ! -e "$0.go" ]; do [ -e "$0" ] || exit 1; sleep 0.02; done
echo made >> "$0.made"
echo figure > "$last.part" && mv "$last.part" "$last"
)");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    const auto output = folder / "figure.pdf";
    figures::FigureRequest request;
    request.recipe = "indicators";
    Worker reader;
    {
        FigureMaker maker(program.string(), &reader);
        maker.write(request, {"a.headscope.h5"}, QString::fromStdString(output.string()));
        maker.preview(request, {"a.headscope.h5"});
        maker.copy(request, {"a.headscope.h5"}, QStringLiteral("svg"));
    }
    CHECK_FALSE(std::filesystem::exists(output));
    test::write_file(folder / "program.go", "");
    REQUIRE(QTest::qWaitFor([&] { return std::filesystem::exists(output); }, 30'000));
    QTest::qWait(100);  // for others, if there were any
    CHECK(test::read_file(folder / "program.made") == "made\n");
}
