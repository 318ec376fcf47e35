// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/evaluation_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QJsonArray>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "core/figures/options/option_list.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/plain_controls.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"
#include "widgets/training/number_table.h"

namespace headscope::widgets {
namespace {

constexpr int kName = 32;                 ///< characters of a file or a task in the row of choices
constexpr int kNumbersBesideFrom = 1500;  ///< pixels from which the numbers stand beside the figure

QString cut(const QString& text) {
    return text.size() > kName ? text.left(kName - 1) + QStringLiteral("…") : text;
}

QString spaced(const std::string& name) {
    return cut(QString::fromStdString(name).replace(QLatin1Char('_'), QLatin1Char(' ')));
}

}  // namespace

EvaluationView::EvaluationView(Desk* desk, const char* recipe, bool lengths, QWidget* parent)
    : View(desk, parent, Of::training),
      recipe_(recipe),
      lengths_(lengths),
      maker_(new EvaluationMaker(&desk->runs().worker(), this)) {
    build();
    connect(maker_, &EvaluationMaker::made, this, [this] {
        fill_choices();
        draw();
    });
    connect(&shelf(), &EvaluationShelf::changed, this, &EvaluationView::refresh_later);
    connect(&shelf(), &EvaluationShelf::evaluating_changed, this, &EvaluationView::refresh_later);
    connect(&shelf(), &EvaluationShelf::progressed, this, [this] {
        if (shelf().all().empty())
            refresh_later();
        else
            show_evaluating();
    });
    connect(&desk->runs(), &RunShelf::runs_changed, this, &EvaluationView::refresh_later);
}

EvaluationShelf& EvaluationView::shelf() const {
    return desk().evaluations();
}

void EvaluationView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addWidget(make_bar());
    files_ = new QWidget(content());
    new FlowLayout(files_);
    column->addWidget(files_);
    failure_ = new Banner(content());
    failure_->setObjectName(QStringLiteral("failure"));
    column->addWidget(failure_);
    picture_ = new FigureView(content());
    numbers_ = new NumberTable(content());
    splitter_ = new QSplitter(Qt::Vertical, content());
    splitter_->setObjectName(QStringLiteral("evaluation_splitter"));
    splitter_->addWidget(picture_);
    splitter_->addWidget(numbers_);
    splitter_->setStretchFactor(0, 3);
    splitter_->setStretchFactor(1, 2);
    splitter_->setSizes(shares_);
    column->addWidget(splitter_, 1);
    pointed_ = new LineLabel(content());
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(pointed_);
    connect(picture_, &FigureView::pointed, this, &EvaluationView::say);
    add_command(
        "evaluation_copy_numbers", tr("Copy the numbers"), {}, tr("Copy the selected rows, or all"),
        [this] { numbers_->copy(); }, [this] { return numbers_->numbers().rowCount() > 0; });
}

QWidget* EvaluationView::make_bar() {
    auto* bar = bar_ = new QWidget(content());
    auto* row = new FlowLayout(bar);
    const auto box = [&](const char* name, const QString& about) {
        auto* made = make_combo(bar, name, about);
        row->addWidget(made);
        connect(made, &QComboBox::currentIndexChanged, this, [this] {
            if (filling_) return;
            wanted_task_ = task_->currentData().toString().toStdString();
            wanted_metric_ = metric_->currentData().toString().toStdString();
            wanted_length_.reset();
            if (length_ && length_->currentData().isValid()) wanted_length_ = length_->currentData().toLongLong();
            refresh_later();
            Q_EMIT state_changed();
        });
        return made;
    };
    task_ = box("evaluation_task", tr("The task to draw"));
    metric_ = box("evaluation_metric", tr("The metric to draw"));
    // Some recipes draw one task and metric.
    const auto chosen_of = [this](const char* option) {
        return figures::has_option(recipe_, *figures::find_figure_option(option));
    };
    task_->setVisible(chosen_of("task"));
    metric_->setVisible(chosen_of("metric"));
    if (lengths_) length_ = box("evaluation_length", tr("Tokens of context: the lengths that all tasks have"));
    evaluate_ = new QPushButton(bar);
    evaluate_->setObjectName(QStringLiteral("evaluation_evaluate"));
    row->addWidget(evaluate_);
    connect(evaluate_, &QPushButton::clicked, this, [this] {
        if (shelf().evaluating().isEmpty())
            Q_EMIT shelf().evaluate_wanted();
        else
            Q_EMIT shelf().evaluate_unwanted();
    });
    plan_ = new QPushButton(tr("Evaluate…"), bar);
    plan_->setObjectName(QStringLiteral("evaluation_plan"));
    plan_->setAccessibleName(plan_->text());
    plan_->setToolTip(tr("Choose models, tasks and data, and evaluate them in a process of its own"));
    row->addWidget(plan_);
    connect(plan_, &QPushButton::clicked, this, [this] { Q_EMIT shelf().plan_wanted(); });
    progress_ = new QLabel(bar);
    progress_->setObjectName(QStringLiteral("evaluation_progress"));
    progress_->setTextFormat(Qt::PlainText);
    row->addWidget(progress_);
    return bar;
}

bool EvaluationView::can_evaluate() const {
    const auto& runs = desk().runs().runs();
    return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return !run.record->snapshots.empty(); });
}

void EvaluationView::show_evaluating() {
    const bool busy = !shelf().evaluating().isEmpty();
    evaluate_->setText(busy ? tr("Stop evaluating") : tr("Evaluate the open runs"));
    evaluate_->setAccessibleName(evaluate_->text());
    evaluate_->setToolTip(busy ? shelf().evaluating()
                               : tr("Measure perplexity and accuracy of each open run's best snapshot on its held-out "
                                    "text, at 1/16 to 1 of its training length, in a process of its own"));
    evaluate_->setVisible(busy || can_evaluate());
    plan_->setVisible(!busy);
    progress_->setVisible(busy);
    progress_->setText(cut(shelf().progress()));
    progress_->setToolTip(shelf().evaluating_words());
}

void EvaluationView::show_nothing() {
    if (!shelf().evaluating().isEmpty()) {
        show_notice(tr("Evaluating…"), shelf().evaluating_words(), tr("Stop"),
                    [this] { Q_EMIT shelf().evaluate_unwanted(); });
        return;
    }
    const QString how = tr("Evaluate open models here, or drop a file NAME.evaluation.h5 onto this window.");
    if (can_evaluate())
        show_notice(tr("No evaluation is open"), how, tr("Evaluate the open runs"),
                    [this] { Q_EMIT shelf().evaluate_wanted(); });
    else
        show_notice(tr("No evaluation is open"), how, tr("Evaluate models…"), [this] { Q_EMIT shelf().plan_wanted(); });
}

/// One for each file where there are several.
void EvaluationView::fill_boxes() {
    const auto& all = shelf().all();
    const std::size_t wanted = all.size() > 1 ? all.size() : 0;
    while (boxes_.size() > wanted) {
        delete boxes_.back();
        boxes_.pop_back();
    }
    while (boxes_.size() < wanted) {
        auto* box = new QCheckBox(files_);
        box->setObjectName(QStringLiteral("evaluation_file_%1").arg(boxes_.size()));
        files_->layout()->addWidget(box);
        box->show();
        connect(box, &QCheckBox::toggled, this, [this, box](bool on) {
            shelf().set_shown(box->property("evaluation").toInt(), on);
            Q_EMIT state_changed();
        });
        boxes_.push_back(box);
    }
    for (std::size_t i = 0; i < wanted; ++i) {
        const QSignalBlocker quiet(boxes_[i]);
        boxes_[i]->setProperty("evaluation", all[i].id);
        boxes_[i]->setText(cut(all[i].name));
        boxes_[i]->setChecked(all[i].shown);
        boxes_[i]->setAccessibleName(tr("Draw %1").arg(all[i].name));
        boxes_[i]->setToolTip(tr("Draw the results of\n%1").arg(all[i].path));
    }
    files_->setVisible(wanted > 0);
    files_->updateGeometry();
}

void EvaluationView::fill_choices() {
    const MadeEvaluation& made = maker_->made_figure();
    filling_ = true;
    const auto fill = [](QComboBox* box, const QString& none, const std::vector<std::string>& names,
                         const std::string& chosen) {
        box->clear();
        box->addItem(none);
        for (const std::string& name : names) box->addItem(spaced(name), QString::fromStdString(name));
        box->setCurrentIndex(chosen.empty() ? 0 : std::max(0, box->findData(QString::fromStdString(chosen))));
        box->setEnabled(names.size() > 1);
    };
    fill(task_, tr("All tasks"), made.tasks, made.options.task);
    fill(metric_, first_metric(), made.metrics, made.options.metric);
    if (length_) {
        length_->clear();
        length_->addItem(usual_length());
        for (const std::int64_t length : made.lengths)
            length_->addItem(tr("%1 tokens").arg(length), static_cast<qlonglong>(length));
        const auto& chosen = made.options.length;
        length_->setCurrentIndex(chosen ? std::max(0, length_->findData(static_cast<qlonglong>(*chosen))) : 0);
        length_->setEnabled(made.lengths.size() > 1);
    }
    filling_ = false;
}

void EvaluationView::refresh() {
    if (shelf().all().empty()) return show_nothing();
    fill_boxes();
    show_evaluating();
    picture_->set_theme(desk().theme());
    EvaluationRequest wish{recipe_, {}, {}};
    wish.options.task = wanted_task_;
    wish.options.metric = wanted_metric_;
    wish.options.length = wanted_length_;
    choose(wish.options);
    for (const OpenEvaluation& one : shelf().all())
        if (one.shown) wish.records.push_back(one.record);
    if (wish.records.empty()) {
        failure_->set(tr("Tick an evaluation to draw its results."));
        picture_->set_figure(nullptr);
        numbers_->set_table(nullptr);
        show_made(nullptr);
        return show_content();
    }
    maker_->request(wish);
    if (maker_->made_figure().wish.records.empty()) return show_reading();
    draw();
}

void EvaluationView::draw() {
    const MadeEvaluation& made = maker_->made_figure();
    if (made.wish.records.empty() || shelf().all().empty() || shelf().shown_paths().isEmpty()) return;
    failure_->set(made.failure);
    if (picture_->figure() != made.figure.get()) picture_->set_figure(made.figure);
    numbers_->set_table(made.table);
    show_made(&made);
    show_content();
    say({});
}

void EvaluationView::say(const QString& text) {
    const QString words = text.isEmpty() && picture_->figure()
                              ? tr("Point at a dot to read its value · Ctrl+C in the table copies numbers")
                              : text;
    pointed_->setText(words);
    pointed_->setToolTip(words);
}

/// Beside each other where there is room for both.
void EvaluationView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const Qt::Orientation wanted = width() > kNumbersBesideFrom ? Qt::Horizontal : Qt::Vertical;
    if (wanted == splitter_->orientation()) return;
    splitter_->setOrientation(wanted);
    splitter_->setSizes(shares_);
}

void EvaluationView::set_shares(const QList<int>& shares) {
    shares_ = shares;
    splitter_->setSizes(shares_);
}

QJsonObject EvaluationView::state() const {
    QJsonObject state{{"task", QString::fromStdString(wanted_task_)},
                      {"metric", QString::fromStdString(wanted_metric_)}};
    if (wanted_length_) state["length"] = static_cast<double>(*wanted_length_);
    QJsonArray hidden;
    for (const OpenEvaluation& one : shelf().all())
        if (!one.shown) hidden.append(one.path);
    state["hidden"] = hidden;
    return state;
}

void EvaluationView::restore(const QJsonObject& state) {
    wanted_task_ = state["task"].toString().toStdString();
    wanted_metric_ = state["metric"].toString().toStdString();
    wanted_length_.reset();
    if (const double length = state["length"].toDouble(); lengths_ && length >= 1 && length < 9e15)
        wanted_length_ = static_cast<std::int64_t>(length);
    if (const QJsonValue hidden = state["hidden"]; hidden.isArray()) {
        std::vector<std::pair<int, bool>> shown;
        for (const OpenEvaluation& one : shelf().all())
            shown.emplace_back(one.id, !hidden.toArray().contains(one.path));
        for (const auto& [id, on] : shown) shelf().set_shown(id, on);
    }
    refresh_later();
}

std::optional<FigureRequest> EvaluationView::figure() const {
    const MadeEvaluation& made = maker_->made_figure();
    if (!made.figure || shelf().shown_paths().isEmpty()) return std::nullopt;
    FigureRequest wish{recipe_, made.options, {}};
    wish.paths = shelf().shown_paths();
    return wish;
}

}  // namespace headscope::widgets
