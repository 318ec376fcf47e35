// SPDX-License-Identifier: GPL-3.0-or-later
// Results of evaluations: their figures, and the tables of their numbers and tasks.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFont>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/make_figure.h"
#include "tests/core/figures/sample_records.h"
#include "tests/widgets/child.h"
#include "tests/widgets/desk_fixture.h"
#include "tests/widgets/evaluation/made_evaluation.h"
#include "tests/widgets/run_fixture.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/banner.h"
#include "widgets/training/number_table.h"
#include "widgets/views/tasks/task_grid_table.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

using tests::child;
using tests::sample;
using Record = std::shared_ptr<const store::Evaluation>;
constexpr const char* kViews[] = {"context_perplexity", "ablation", "scaling"};

struct Page {
    explicit Page(const char* name, const std::vector<Record>& records = {sample()}) {
        int number = 0;
        for (const Record& record : records)
            desk.evaluations().take(QStringLiteral("/made/scores-%1.evaluation.h5").arg(++number), record);
        view.reset(tests::view_kind(name).make(&desk, nullptr));
        view->resize(1000, 600);
        view->show();
        settle();
    }
    void settle() { tests::settle(desk.runs()); }
    void choose(const char* box, const QString& text) {
        auto* combo = child<QComboBox>(*view, box);
        REQUIRE(combo->findText(text) >= 0);
        combo->setCurrentIndex(combo->findText(text));
        settle();
    }
    /// The figure that export would make of the same files.
    figures::FigureData exported(const std::vector<Record>& records) {
        REQUIRE(view->figure());
        figures::FigureInputs inputs;
        inputs.evaluations = records;
        return figures::make_figure(view->figure()->recipe, inputs, view->figure()->options);
    }

    bool application = (ensure_application(), true);
    Desk desk;
    std::unique_ptr<View> view;
};

}  // namespace

TEST_CASE("Without an evaluation there is a way to one", "[evaluation]") {
    for (const char* name : kViews) {
        Page page(name, {});
        QSignalSpy plan(&page.desk.evaluations(), &EvaluationShelf::plan_wanted);
        QSignalSpy evaluate(&page.desk.evaluations(), &EvaluationShelf::evaluate_wanted);
        CHECK_FALSE(page.view->figure());
        child<QPushButton>(*page.view, "notice_action")->click();
        CHECK(plan.count() == 1);
        // A run that has a snapshot can be evaluated here.
        RunShelf& runs = page.desk.runs();
        runs.take(runs.add(QStringLiteral("/made/run"), QStringLiteral("run")), tests::made_run());
        page.settle();
        child<QPushButton>(*page.view, "notice_action")->click();
        CHECK(evaluate.count() == 1);
        page.desk.evaluations().set_evaluating(QStringLiteral("Evaluating run"));
        page.settle();
        QSignalSpy stop(&page.desk.evaluations(), &EvaluationShelf::evaluate_unwanted);
        child<QPushButton>(*page.view, "notice_action")->click();
        CHECK(stop.count() == 1);
    }
}

TEST_CASE("A view of evaluations shows the figure and the table that export makes", "[evaluation]") {
    for (const char* name : kViews) {
        INFO(name);
        const Record record = sample();
        Page page(name, {record});
        auto* picture = page.view->findChild<FigureView*>();
        REQUIRE(picture);
        REQUIRE(picture->figure());
        REQUIRE(page.view->figure());
        CHECK(page.view->figure()->recipe == QString::fromLatin1(name).replace('_', '-').toStdString());
        CHECK(page.view->figure()->paths == QStringList{QStringLiteral("/made/scores-1.evaluation.h5")});
        CHECK(picture->figure()->panels.size() == page.exported({record}).panels.size());
        CHECK(figures::csv(*child<NumberTable>(*page.view, "numbers")->numbers().table()) ==
              figures::figure_csv(page.exported({record})));
        CHECK(child<Banner>(*page.view, "failure")->text().isEmpty());
        // The palette copies the table.
        bool copied = false;
        for (QAction* action : page.view->commands()) {
            if (action->objectName() != QStringLiteral("evaluation_copy_numbers")) continue;
            action->trigger();
            copied = true;
        }
        CHECK(copied);
        CHECK(QApplication::clipboard()->text() == child<NumberTable>(*page.view, "numbers")->copied());
    }
}

TEST_CASE("Views of results that have a figure of their own draw those alone", "[evaluation]") {
    const auto record = std::make_shared<const store::Evaluation>(test::sample_long_evaluation());
    for (const char* name : {"position_perplexity", "ruler", "latency"}) {
        INFO(name);
        Page page(name, {record});
        REQUIRE(page.view->figure());
        CHECK(page.view->figure()->recipe == QString::fromLatin1(name).replace('_', '-').toStdString());
        CHECK(child<Banner>(*page.view, "failure")->text().isEmpty());
        CHECK(figures::csv(*child<NumberTable>(*page.view, "numbers")->numbers().table()) ==
              figures::figure_csv(page.exported({record})));
        const bool tasks = std::string(name) == "ruler";
        CHECK(child<QComboBox>(*page.view, "evaluation_task")->isVisibleTo(page.view.get()) == tasks);
        CHECK_FALSE(child<QComboBox>(*page.view, "evaluation_metric")->isVisibleTo(page.view.get()));
        if (tasks) {
            CHECK(child<QComboBox>(*page.view, "evaluation_task")->count() == 5);
            page.choose("evaluation_task", QStringLiteral("ruler vt"));
            CHECK(page.view->findChild<FigureView*>()->figure()->panels.size() == 1);
        }
        // A file without such results: the notice has the command that makes them.
        Page other(name, {sample()});
        CHECK_FALSE(other.view->figure());
        CHECK(child<Banner>(*other.view, "failure")->text().contains(QStringLiteral("expected results of ")));
        page.view->resize(800, 400);
        page.settle();
        CHECK(page.view->minimumSizeHint().width() <= 800);
        CHECK(page.view->minimumSizeHint().height() <= 400);
    }
}

TEST_CASE("Tasks are lines beside models, or models are, with the best marked, sorted and copied", "[evaluation]") {
    const auto record = std::make_shared<const store::Evaluation>(test::sample_task_evaluation());
    Page page("tasks", {record});
    REQUIRE(page.view->figure());
    CHECK(page.view->figure()->recipe == "tasks");
    CHECK(child<Banner>(*page.view, "failure")->text().isEmpty());
    CHECK(figures::csv(*child<NumberTable>(*page.view, "numbers")->numbers().table()) ==
          figures::figure_csv(page.exported({record})));
    auto* table = child<TaskGridTable>(*page.view, "tasks_table");
    const QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    CHECK(table->isVisibleTo(page.view.get()));
    REQUIRE(table->model()->rowCount() == 9);
    REQUIRE(table->model()->columnCount() == 6);  // names, three models, chance, majority
    const auto at = [&](int row, int column, int role = Qt::DisplayRole) {
        return table->model()->index(row, column).data(role);
    };
    CHECK(at(0, 0).toString() == QStringLiteral("arc easy, acc ↑"));
    CHECK(at(0, 1).toString() == QStringLiteral("55.0 ± 2.5"));
    CHECK(at(0, 1, Qt::ToolTipRole).toString() == QStringLiteral("0.55 ± 0.0249, the best"));
    CHECK(at(0, 3, Qt::AccessibleTextRole).toString() == QStringLiteral("50.0 ± 2.5, the second best"));
    CHECK(at(0, 1, Qt::FontRole).value<QFont>().bold());
    CHECK_FALSE(at(0, 2, Qt::FontRole).value<QFont>().bold());
    CHECK(at(0, 3, Qt::FontRole).value<QFont>().underline());
    CHECK(at(8, 0).toString().startsWith(QStringLiteral("average of 5 accuracies")));
    CHECK(at(8, 0, Qt::FontRole).value<QFont>().italic());
    // A heading sorts, Enter in the table sorts by its column; averages and baselines stay last.
    page.choose("tasks_lines", QStringLiteral("Models in rows"));
    REQUIRE(table->model()->rowCount() == 5);
    CHECK(at(0, 0).toString() == QStringLiteral("Standard"));
    table->sortByColumn(1, Qt::AscendingOrder);
    CHECK(at(0, 0).toString() == QStringLiteral("MLP uniform"));
    CHECK(at(3, 0).toString() == QStringLiteral("chance"));
    table->setCurrentIndex(table->model()->index(0, 1));
    QTest::keyClick(table, Qt::Key_Return);
    CHECK(at(0, 0).toString() == QStringLiteral("Standard"));
    CHECK(table->currentIndex().data().toString() == QStringLiteral("40.0 ± 2.5"));  // moved with its line
    QTest::keyClick(table, Qt::Key_Return);
    CHECK(at(0, 0).toString() == QStringLiteral("MLP uniform"));
    // Copies have the shown rows, in their order.
    child<QPushButton>(*page.view, "tasks_copy_latex")->click();
    const QString latex = QApplication::clipboard()->text();
    CHECK(latex.startsWith(QStringLiteral("\\begin{tabular}{lrrrrrrrrr}\n\\toprule\n")));
    CHECK(latex.indexOf(QStringLiteral("MLP uniform")) < latex.indexOf(QStringLiteral("Standard")));
    CHECK(latex.contains(QStringLiteral("\\textbf{55.0} $\\pm$ 2.5")));
    child<QPushButton>(*page.view, "tasks_copy_csv")->click();
    CHECK(QApplication::clipboard()->text().startsWith(QStringLiteral("model,\"arc easy, acc\",")));
    QApplication::clipboard()->clear();
    QTest::keyClick(table, Qt::Key_C, Qt::ControlModifier);
    CHECK(QApplication::clipboard()->text() == table->csv());
    // The metric is chosen for all tasks that have it; sessions keep the choices.
    CHECK(child<QComboBox>(*page.view, "evaluation_metric")->itemText(0) == QStringLiteral("As in the papers"));
    page.choose("evaluation_metric", QStringLiteral("acc norm"));
    CHECK(page.view->figure()->options.metric == "acc_norm");
    CHECK(table->model()->headerData(1, Qt::Horizontal).toString() == QStringLiteral("arc easy, acc norm ↑"));
    Page other("tasks", {record});
    other.view->restore(page.view->state());
    other.settle();
    CHECK(other.view->figure()->options == page.view->figure()->options);
    CHECK(child<TaskGridTable>(*other.view, "tasks_table")->model()->rowCount() == 5);
    // A file without such results: the notice has the command that makes them, and nothing can be copied.
    Page without("tasks", {sample()});
    CHECK(child<Banner>(*without.view, "failure")->text().contains(QStringLiteral("--task zero_shot")));
    CHECK(child<TaskGridTable>(*without.view, "tasks_table")->model()->rowCount() == 0);
    CHECK_FALSE(child<QPushButton>(*without.view, "tasks_copy_latex")->isEnabled());
    page.view->resize(800, 400);
    page.settle();
    CHECK(page.view->minimumSizeHint().width() <= 800);
    CHECK(page.view->minimumSizeHint().height() <= 400);
}

TEST_CASE("Task, metric and length are those that the files have, and are drawn", "[evaluation]") {
    const Record record = sample();
    Page page("ablation", {record});
    auto* picture = page.view->findChild<FigureView*>();
    CHECK(picture->figure()->panels.size() == 2);
    page.choose("evaluation_task", QStringLiteral("perplexity"));
    CHECK(picture->figure()->panels.size() == 1);
    CHECK(page.view->figure()->options.task == "perplexity");
    CHECK(child<QComboBox>(*page.view, "evaluation_metric")->count() == 3);
    page.choose("evaluation_metric", QStringLiteral("loss"));
    page.choose("evaluation_length", QStringLiteral("64 tokens"));
    CHECK(page.view->figure()->options.metric == "loss");
    CHECK(page.view->figure()->options.length == 64);
    CHECK(picture->figure()->panels.front().x.label == "loss");
    // Undo and sessions bring it back; a choice that another file lacks is left out and does not fail.
    const QJsonObject state = page.view->state();
    Page other("ablation", {record});
    other.view->restore(state);
    other.settle();
    CHECK(other.view->figure()->options == page.view->figure()->options);
    store::Evaluation mqar = *record;
    std::erase_if(mqar.results, [](const auto& one) { return one.task != "mqar"; });
    const auto only = std::make_shared<const store::Evaluation>(mqar);
    other.desk.evaluations().take(QStringLiteral("/made/scores-1.evaluation.h5"), only);
    other.settle();
    CHECK(child<Banner>(*other.view, "failure")->text().isEmpty());
    CHECK(other.view->figure()->options == figures::FigureOptions());
}

TEST_CASE("Files are drawn together, and each can be left out", "[evaluation]") {
    const Record record = sample();
    store::Evaluation more = *record;
    for (auto& model : more.models) model.seed += 10;
    const auto other = std::make_shared<const store::Evaluation>(more);
    Page page("scaling", {record, other});
    auto* numbers = child<NumberTable>(*page.view, "numbers");
    const auto seeds = [&] {
        const auto& columns = numbers->numbers().table()->columns;
        const auto column =
            std::find_if(columns.begin(), columns.end(), [](const auto& one) { return one.name == "seeds"; });
        REQUIRE(column != columns.end());
        return std::get<std::vector<std::int64_t>>(column->values).front();
    };
    CHECK(seeds() == 6);
    auto* box = child<QCheckBox>(*page.view, "evaluation_file_1");
    box->click();
    page.settle();
    CHECK(seeds() == 3);
    CHECK(page.view->figure()->paths == QStringList{QStringLiteral("/made/scores-1.evaluation.h5")});
    const QJsonObject state = page.view->state();
    child<QCheckBox>(*page.view, "evaluation_file_0")->click();
    page.settle();
    CHECK_FALSE(child<Banner>(*page.view, "failure")->text().isEmpty());
    CHECK_FALSE(page.view->figure());
    page.view->restore(state);
    page.settle();
    CHECK(page.desk.evaluations().shown_paths() == QStringList{QStringLiteral("/made/scores-1.evaluation.h5")});
    CHECK(seeds() == 3);
}

TEST_CASE("Under the pointer is what a dot says, with its error", "[evaluation]") {
    for (const char* name : kViews) {
        INFO(name);
        Page page(name);
        auto* picture = page.view->findChild<FigureView*>();
        QStringList texts;
        const QRect panel = picture->panel_rect(0);
        REQUIRE(panel.isValid());
        for (int x = panel.left(); x < panel.right(); x += 2)
            for (int y = panel.top(); y < panel.bottom(); y += 2)
                if (const QString text = picture->spot({x, y}).text; !text.isEmpty() && !texts.contains(text))
                    texts << text;
        INFO(texts.join('\n').toStdString());
        CHECK(texts.size() >= 4);
        for (const QString& text : texts) {
            CHECK(text.contains(QStringLiteral("token perplexity")) == (std::string(name) != "context_perplexity"));
            CHECK(text.contains(QStringLiteral(" ± ")));
        }
    }
}

TEST_CASE("Impossible numbers are drawn or refused, and the view stays", "[evaluation]") {
    for (const char* name : kViews) {
        INFO(name);
        store::Evaluation wild = test::sample_evaluation();
        const double values[] = {1e308, -1e308, 1e-308, 0, std::numeric_limits<double>::infinity()};
        for (std::size_t i = 0; i < wild.results.size(); ++i) {
            wild.results[i].value = values[i % 5];
            wild.results[i].error = values[(i + 2) % 5];
            if (i % 7 == 0) wild.results[i].length = std::numeric_limits<std::int64_t>::max() - static_cast<int>(i);
            if (i % 7 == 1) wild.results[i].length = std::numeric_limits<std::int64_t>::min();
        }
        for (auto& model : wild.models) {
            model.parameters = std::numeric_limits<std::int64_t>::min();
            model.training_length = -5;
        }
        const auto record = std::make_shared<const store::Evaluation>(wild);
        Page page(name, {record});
        CHECK(page.view->isVisible());
        // More kinds than can be shown: a notice, no figure.
        store::Evaluation many = test::sample_evaluation();
        for (std::size_t i = 0; i < many.results.size(); ++i) many.results[i].task = "task " + std::to_string(i);
        Page other(name, {std::make_shared<const store::Evaluation>(many)});
        CHECK(child<Banner>(*other.view, "failure")->text().contains(QStringLiteral("at most")));
        CHECK_FALSE(other.view->figure());
    }
}

TEST_CASE("Every control of the views of evaluations has a name, and they fit", "[evaluation]") {
    for (const char* name : kViews) {
        Page page(name, {sample(), sample()});
        page.view->resize(800, 400);
        page.settle();
        for (const QWidget* widget : page.view->findChildren<QWidget*>()) {
            const bool control = qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QComboBox*>(widget);
            const bool internal = widget->objectName().startsWith(QStringLiteral("qt_")) ||
                                  qobject_cast<const QTableView*>(widget->parentWidget());
            if (!control || internal || !widget->isVisible()) continue;
            INFO(name << ": " << widget->metaObject()->className() << " " << widget->objectName().toStdString());
            CHECK_FALSE(widget->accessibleName().isEmpty());
            CHECK_FALSE(widget->toolTip().isEmpty());
        }
        CHECK(page.view->minimumSizeHint().width() <= 800);
        CHECK(page.view->minimumSizeHint().height() <= 400);
    }
}
