// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks x models: the table that papers print, and its figure.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLayout>
#include <QPushButton>
#include <QSplitter>

#include "core/figures/task_averages.h"
#include "widgets/desk/presence.h"
#include "widgets/training/number_table.h"
#include "widgets/views/evaluation_view.h"
#include "widgets/views/tasks/task_grid_table.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

class TasksView final : public EvaluationView {
public:
    TasksView(Desk* desk, QWidget* parent) : EvaluationView(desk, "tasks", true, parent) {
        lines_ = new QComboBox(bar());
        lines_->setObjectName(QStringLiteral("tasks_lines"));
        lines_->setAccessibleName(tr("Rows of the table"));
        lines_->setToolTip(
            tr("One row per task, with the average below; or one row per model, with chance and majority below"));
        lines_->addItem(tr("Tasks in rows"), QStringLiteral("tasks"));
        lines_->addItem(tr("Models in rows"), QStringLiteral("models"));
        bar()->layout()->addWidget(lines_);
        average_ = new QComboBox(bar());
        average_->setObjectName(QStringLiteral("tasks_average"));
        average_->setAccessibleName(tr("The average"));
        average_->setToolTip(
            tr("Whose average is shown. Each paper averages tasks of its own; a model that lacks one of them has no "
               "average"));
        average_->addItem(tr("Average of these tasks"), QString());
        for (const figures::TaskAverage& one : figures::task_averages())
            average_->addItem(tr("Average of %1").arg(QString::fromUtf8(one.title.data(), std::ssize(one.title))),
                              QString::fromUtf8(one.name.data(), std::ssize(one.name)));
        average_->addItem(tr("Average of all accuracies"), QString::fromLatin1(figures::kAverageOfAll));
        bar()->layout()->addWidget(average_);
        table_ = new TaskGridTable(content());
        splitter()->insertWidget(0, table_);
        splitter()->setStretchFactor(0, 2);
        numbers()->hide();  // the same numbers, a row each
        set_shares({450, 550, 0});
        add_copy("tasks_copy_latex", tr("Copy as LaTeX"), tr("Copy the table as shown, as a LaTeX tabular (booktabs)"),
                 &TaskGridTable::latex);
        add_copy("tasks_copy_csv", tr("Copy as CSV"), tr("Copy the table as shown, with all digits"),
                 &TaskGridTable::csv);
        add_command(
            "tasks_sort", tr("Sort the tasks by the current column"), {},
            tr("Sort the highest first; again for the lowest first (Enter in the table)"),
            [this] { table_->sort_by_current(); }, [this] { return table_->can_sort(); });
        connect(lines_, &QComboBox::currentIndexChanged, this, [this] {
            fill_table();
            Q_EMIT state_changed();
        });
        connect(average_, &QComboBox::currentIndexChanged, this, [this] {
            refresh_later();
            Q_EMIT state_changed();
        });
    }

    QJsonObject state() const override {
        QJsonObject state = EvaluationView::state();
        state["lines"] = lines_->currentData().toString();
        state["average"] = average_->currentData().toString();
        return state;
    }
    void restore(const QJsonObject& state) override {
        EvaluationView::restore(state);
        if (const int index = lines_->findData(state["lines"].toString()); index >= 0) lines_->setCurrentIndex(index);
        if (const int index = average_->findData(state["average"].toString()); index >= 0)
            average_->setCurrentIndex(index);
    }

protected:
    void choose(figures::FigureOptions& options) const override {
        options.average = average_->currentData().toString().toStdString();
    }
    void show_made(const MadeEvaluation* made) override {
        const auto wanted = made ? made->tasks_by_model : nullptr;
        if (wanted == shown_) return;  // keeps the current cell
        shown_ = wanted;
        fill_table();
    }
    QString first_metric() const override { return tr("As in the papers"); }
    QString usual_length() const override { return tr("Longest length"); }

private:
    void add_copy(const char* name, const QString& text, const QString& tip, QString (TaskGridTable::*copied)() const) {
        auto* button = new QPushButton(text, bar());
        button->setObjectName(QLatin1String(name));
        button->setAccessibleName(text);
        button->setToolTip(tip);
        button->setEnabled(false);
        bar()->layout()->addWidget(button);
        connect(button, &QPushButton::clicked, this,
                [this, copied] { QApplication::clipboard()->setText((table_->*copied)()); });
        add_command(button);
        copies_.push_back(button);
    }
    void fill_table() {
        const bool models = lines_->currentData().toString() == QLatin1String("models");
        table_->set_grid(shown_ ? figures::TaskGrid(*shown_, models) : figures::TaskGrid());
        for (QPushButton* button : copies_) button->setEnabled(shown_ != nullptr);
    }

    QComboBox *lines_, *average_;
    TaskGridTable* table_;
    std::vector<QPushButton*> copies_;
    std::shared_ptr<const figures::TaskTable> shown_;
};

}  // namespace

extern const ViewKind kTasks{"tasks",
                             "Tasks",
                             "Which model does best at lm-eval's tasks, and by how much more than it may be off",
                             [](Desk* desk, QWidget* parent) -> View* { return new TasksView(desk, parent); },
                             ViewGroup::results,
                             [](const Desk& desk) { return with_results(desk, "tasks"); }};

}  // namespace headscope::widgets
