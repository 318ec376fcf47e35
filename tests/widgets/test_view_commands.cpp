// SPDX-License-Identifier: GPL-3.0-or-later
// What views do by name: for the palette and the list of keys.
#include <QAction>
#include <QListWidget>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTest>
#include <catch2/catch.hpp>
#include <set>

#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/widgets/desk_fixture.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/panels/command_palette.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

struct Shown {
    explicit Shown(const std::string& name, bool maps = true) {
        tests::SyntheticAnalysis a;
        a.record.maps = maps;
        tests::write_synthetic_analysis(folder / "a.headscope.h5", a);
        study = tests::open_study(desk, folder / "a.headscope.h5");
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(1000, 700);
        view->show();
        tests::settle(desk);
        tests::settle(desk);
    }
    QStringList names() const {
        QStringList names;
        for (const QAction* action : view->commands()) names << action->objectName();
        return names;
    }
    void act(const char* name) {
        for (QAction* action : view->commands())
            if (action->objectName() == QLatin1String(name)) action->trigger();
        tests::settle(desk);
    }

    bool application = (ensure_application(), true);
    test::TemporaryFolder folder;
    Desk desk;
    Study* study = nullptr;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Every command of a view has a name of its own, and what it does in words", "[view][commands]") {
    for (const ViewKind* kind : view_kinds()) {
        INFO(kind->name);
        Shown shown(kind->name);
        std::set<QString> names;
        for (const QAction* action : shown.view->all_commands()) {
            INFO(action->objectName().toStdString());
            CHECK_FALSE(action->objectName().isEmpty());
            CHECK(names.insert(action->objectName()).second);
        }
        std::set<QString> texts;
        for (const QAction* action : shown.view->commands()) {
            INFO(action->objectName().toStdString());
            CHECK_FALSE(action->text().isEmpty());
            CHECK(texts.insert(action->text()).second);
        }
    }
}

TEST_CASE("What views do themselves is in the palette", "[view][commands]") {
    const auto has = [](const char* view, std::initializer_list<const char*> wanted) {
        const Shown shown(view);
        const QStringList names = shown.names();
        for (const char* name : wanted) {
            INFO(view << ": " << name);
            CHECK(names.contains(QLatin1String(name)));
        }
    };
    has("overview",
        {"overview_open_map", "overview_mark", "overview_new_set", "overview_note", "overview_zero", "overview_mean",
         "overview_copy_csv", "overview_copy_latex", "overview_save_csv", "overview_save_latex"});
    has("all_heads", {"fit", "all_heads_mark", "all_heads_open_map"});
    has("map", {"map_region_shown", "map_jump_to", "map_copy_table", "map_zoom_all", "map_region", "map_profiles"});
    has("lines", {"every_head", "lines_only"});
    has("on_text", {"list_shown"});
    has("compare", {"compare_swap", "compare_maps", "compare_heads", "compare_text", "compare_next_head"});
    has("loss", {"numbers"});
}

TEST_CASE("Commands are there while they can be done, and do it", "[view][commands]") {
    Shown shown("overview");
    CHECK_FALSE(shown.names().contains("overview_run_again"));
    CHECK_FALSE(shown.names().contains("overview_copy_sets"));
    shown.act("overview_mark");
    CHECK(shown.desk.head_sets().of(*shown.study).marked().size() == 1);
    CHECK(shown.names().contains("overview_copy_sets"));
    shown.act("overview_zero");
    QSignalSpy wanted(&shown.desk, &Desk::run_wanted);
    shown.act("overview_run_again");
    REQUIRE(wanted.count() == 1);
    CHECK(wanted[0][0].value<RunRequest>().switched_off.size() == 1);

    // In the place of the content: what the notice offers, and nothing else.
    Shown without("lines", false);
    CHECK(without.names() == QStringList{"notice_action"});
    QSignalSpy maps(&without.desk, &Desk::run_wanted);
    without.act("notice_action");
    CHECK(maps.count() == 1);
}

TEST_CASE("Keys of views are listed with those of the window, and the palette has their commands", "[view][commands]") {
    Shown shown("map");
    QWidget window;
    const CommandPalette palette(shown.view->commands(), &window);
    const auto* list = palette.findChild<QListWidget*>();
    REQUIRE(list);
    CHECK(list->findItems(QStringLiteral("Region: what is shown"), Qt::MatchExactly).size() == 1);
    show_shortcuts({}, {{QStringLiteral("Map"), shown.view->all_commands()}}, &window);
    const auto* table = window.findChild<QTableWidget*>();
    REQUIRE(table);
    const auto found = table->findItems(QStringLiteral("In Map: Region: what is shown"), Qt::MatchExactly);
    REQUIRE(found.size() == 1);
    CHECK(table->item(found[0]->row(), 0)->text() == "R");
    CHECK(table->findItems(QStringLiteral("Ctrl+Shift+arrows"), Qt::MatchExactly).size() == 1);
}
