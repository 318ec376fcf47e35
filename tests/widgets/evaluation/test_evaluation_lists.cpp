// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluations outside of their views: the table of numbers, the export page, lists of open files.
#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QListWidget>
#include <QPushButton>
#include <QTest>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/widgets/child.h"
#include "tests/widgets/evaluation/made_evaluation.h"
#include "widgets/desk/desk.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/panels/project_tree.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/training/number_table.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::child;
using tests::sample;

TEST_CASE("The table of numbers is a model as Qt wants it, sorts, and copies in full", "[evaluation]") {
    ensure_application();
    NumberTable table;
    const QAbstractItemModelTester tester(&table.numbers(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    const QAbstractItemModelTester sorted(table.model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    CHECK(table.copied().trimmed().isEmpty());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    auto numbers = std::make_shared<figures::Table>();
    numbers->columns.push_back({"task", std::vector<std::string>{"a\tb", "c", "d"}});
    numbers->columns.push_back({"length", std::vector<std::int64_t>{64, 128, 9}});
    numbers->columns.push_back({"value", std::vector<double>{0.1234567890123, nan, 7}});
    table.set_table(numbers);
    CHECK(table.model()->rowCount() == 3);
    CHECK(table.copied() == QStringLiteral("task\tlength\tvalue\na b\t64\t0.1234567890123\nc\t128\t\nd\t9\t7\n"));
    table.sortByColumn(2, Qt::DescendingOrder);
    CHECK(table.model()->index(0, 0).data().toString() == "d");
    CHECK(table.model()->index(2, 2).data().toString() == QStringLiteral("–"));  // NaN last, either way
    table.sortByColumn(2, Qt::AscendingOrder);
    CHECK(table.model()->index(2, 2).data().toString() == QStringLiteral("–"));
    table.selectRow(1);
    table.show();
    table.setFocus();
    QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
    CHECK(QApplication::clipboard()->text() == QStringLiteral("task\tlength\tvalue\nd\t9\t7\n"));
    table.set_table(nullptr);
    CHECK(table.model()->rowCount() == 0);
}

TEST_CASE("The export page has the evaluations that are open, for their recipes", "[evaluation]") {
    ensure_application();
    Desk desk;
    desk.evaluations().take(QStringLiteral("/made/one.evaluation.h5"), sample());
    desk.evaluations().take(QStringLiteral("/made/two.evaluation.h5"), sample());
    ExportDialog dialog(&desk, "/nowhere/headscope");
    auto* recipes = child<QComboBox>(dialog, "export_recipe");
    for (const char* name : {"context-perplexity", "ablation", "scaling"}) {
        INFO(name);
        CHECK(recipes->findData(QLatin1String(name)) >= 0);
        FigureRequest wish{name, {}, {}};
        wish.options.task = "mqar";
        wish.paths << QStringLiteral("/made/two.evaluation.h5");
        dialog.show_wish(wish);
        auto* inputs = child<QListWidget>(dialog, "export_studies");
        REQUIRE(inputs->count() == 2);
        CHECK(inputs->item(0)->checkState() == Qt::Checked);
        CHECK(inputs->item(1)->checkState() == Qt::Unchecked);
        CHECK(dialog.command().contains(QStringLiteral("/made/two.evaluation.h5")));
        CHECK(dialog.command().contains(QStringLiteral("--task mqar")));
    }
    const auto offers_latex = [&](const char* name) {
        FigureRequest request{name, {}, {}};
        request.paths << QStringLiteral("/made/two.evaluation.h5");
        dialog.show_wish(request);
        child<QPushButton>(dialog, "export_save")->click();
        auto* chooser = child<QFileDialog>(dialog, "export_file");
        chooser->reject();
        return chooser->nameFilters().join(QLatin1Char(' ')).contains(QStringLiteral("*.tex"));
    };
    CHECK(offers_latex("tasks"));
    CHECK_FALSE(offers_latex("scaling"));
}

TEST_CASE("Evaluations have a heading of their own among what is open", "[evaluation]") {
    ensure_application();
    Desk desk;
    ProjectTree tree(&desk);
    const auto names = [&] {
        QStringList all;
        for (int i = 0; i < tree.topLevelItemCount(); ++i)
            if (tree.topLevelItem(i)->text(0) == QStringLiteral("Evaluations") && !tree.topLevelItem(i)->isHidden())
                for (int k = 0; k < tree.topLevelItem(i)->childCount(); ++k)
                    all << tree.topLevelItem(i)->child(k)->text(0);
        return all;
    };
    CHECK(names().isEmpty());
    const int id = desk.evaluations().take(QStringLiteral("/made/one.evaluation.h5"), sample());
    desk.evaluations().take(QStringLiteral("/made/two.h5"), sample());
    // By its models and tasks; a second file of the same ones has a number.
    const QStringList both = names();
    REQUIRE(both.size() == 2);
    CHECK(both[0].startsWith(QString::fromStdString(sample()->models.at(0).name)));
    CHECK(both[0].contains(QString::fromStdString(sample()->results.at(0).task)));
    CHECK(both[1] == both[0] + QStringLiteral(" #2"));
    CHECK(desk.evaluations().take(QStringLiteral("/made/../made/one.evaluation.h5"), sample()) == id);  // read again
    CHECK(names().size() == 2);
    desk.evaluations().remove(id);
    CHECK(names() == QStringList{both[1]});
}

TEST_CASE("A list calls an evaluation by its models and tasks, two alike by a number", "[views][evaluation]") {
    ensure_application();
    Desk desk;
    store::Evaluation one;
    for (const char* name : {"small", "large", "huge"}) {
        store::EvaluatedModel model;
        model.name = name;
        one.models.push_back(model);
    }
    one.results.push_back({0, "perplexity", "loss", 64, 1.0, 0.1, 10, 0});
    const auto take = [&](const char* path, const store::Evaluation& made) {
        const int id = desk.evaluations().take(QLatin1String(path), std::make_shared<const store::Evaluation>(made));
        return desk.evaluations().find(id)->name;
    };
    CHECK(take("/made/small-2026-11-28-054112.evaluation.h5", one) == "small and 2 more: perplexity");
    CHECK(take("/made/again.evaluation.h5", one) == "small and 2 more: perplexity #2");
    one.models.resize(2);
    one.results.push_back({1, "copa", "acc", 64, 1.0, 0.1, 10, 0});
    CHECK(take("/made/two.evaluation.h5", one) == "small, large: perplexity, copa");
    CHECK(take("/made/none.evaluation.h5", {}) == "none.evaluation.h5");
}
