// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/job_form.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/training/job_field.h"

namespace headscope::widgets {
namespace {

/// Keys that most jobs set; the rest has good defaults.
const char* const kUsual[] = {"name",
                              "seed",
                              "model.preset",
                              "model.from",
                              "model.mixer",
                              "model.layout",
                              "objective.kind",
                              "data.corpus",
                              "data.text",
                              "data.generator",
                              "data.tokenizer",
                              "data.sequence_length",
                              "training.steps",
                              "training.minutes",
                              "training.batch",
                              "training.precision",
                              "optimizer.learning_rate",
                              "schedule.kind",
                              "schedule.warmup_steps",
                              "evaluation.every",
                              "snapshots.every",
                              "probe.every",
                              "sample.every"};

/// The device is a usual key of a machine with a GPU.
bool is_usual(const std::string& key, const JobChoices& choices) {
    if (key == "training.device") return !choices.devices.empty();
    return std::any_of(std::begin(kUsual), std::end(kUsual), [&](const char* name) { return key == name; });
}

QString title_of(const std::string& section) {
    if (section.empty()) return JobForm::tr("Run");
    QString title = QString::fromStdString(section);
    title[0] = title[0].toUpper();
    return title;
}

}  // namespace

JobForm::JobForm(JobDraft* draft, QWidget* parent)
    : QWidget(parent),
      draft_(draft),
      find_(new QLineEdit(this)),
      scroll_(new QScrollArea(this)),
      none_(new QLabel(tr("No key has this name"), this)),
      all_box_(new QCheckBox(tr("All keys"), this)) {
    find_->setObjectName(QStringLiteral("job_find"));
    find_->setAccessibleName(tr("Find a key"));
    find_->setPlaceholderText(tr("Find a key"));
    find_->setToolTip(tr("Show the keys whose name or help has these words"));
    find_->setClearButtonEnabled(true);
    all_box_->setObjectName(QStringLiteral("job_all"));
    all_box_->setAccessibleName(tr("All keys"));
    all_box_->setToolTip(tr("Show also the keys that few jobs change"));
    auto* head = new QHBoxLayout;
    head->addWidget(find_, 1);
    head->addWidget(all_box_);
    scroll_->setWidgetResizable(true);
    scroll_->setFrameShape(QFrame::NoFrame);
    scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    none_->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addLayout(head);
    column->addWidget(none_);
    column->addWidget(scroll_, 1);
    build();
    connect(find_, &QLineEdit::textChanged, this, &JobForm::filter);
    connect(all_box_, &QCheckBox::toggled, this, &JobForm::set_all);
    connect(draft_, &JobDraft::changed, this, &JobForm::follow);
    connect(draft_, &JobDraft::estimate_changed, this, &JobForm::follow);
    connect(draft_, &JobDraft::choices_changed, this, [this] {
        for (Row& row : rows_) {
            row.field->set_choices(draft_->choices());
            row.usual = is_usual(row.key->full_name(), draft_->choices());
        }
        filter();
    });
    follow();
    filter();
}

void JobForm::build() {
    auto* page = new QWidget(scroll_);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(2, 2, 8, 2);
    column->setSpacing(4);
    for (const training::JobKey& key : training::job_keys()) {
        const QString title = title_of(key.section);
        if (sections_.empty() || sections_.back().name != title) {
            auto* label = new QLabel(title, page);
            QFont bold = label->font();
            bold.setBold(true);
            label->setFont(bold);
            label->setContentsMargins(0, 6, 0, 0);
            column->addWidget(label);
            sections_.push_back({title, label, {}});
        }
        auto* field = new JobField(key, draft_, page);
        column->addWidget(field);
        const QString full = QString::fromStdString(key.full_name());
        connect(field, &JobField::entered, this, [this, full] { Q_EMIT focused(full); });
        sections_.back().rows.push_back(rows_.size());
        rows_.push_back({&key, field, is_usual(key.full_name(), draft_->choices())});
    }
    column->addStretch();
    scroll_->setWidget(page);
}

void JobForm::set_all(bool all) {
    if (all == all_) return;
    all_ = all;
    all_box_->setChecked(all);
    filter();
    Q_EMIT all_changed(all);
}

void JobForm::filter() {
    const QStringList words = find_->text().toLower().split(QLatin1Char(' '), Qt::SkipEmptyParts);
    bool any = false;
    for (const Section& section : sections_) {
        bool some = false;
        for (const std::size_t r : section.rows) {
            const Row& row = rows_[r];
            const QString about = QString::fromStdString(row.key->full_name() + " " + row.key->help).toLower() +
                                  words_of_key(row.key->name).toLower();
            const bool found =
                std::all_of(words.begin(), words.end(), [&](const QString& word) { return about.contains(word); });
            // Keys that differ from their defaults are never hidden.
            const bool said = row.key->get(draft_->job()) != row.key->get(training::JobFile{});
            const bool shown = words.isEmpty() ? all_ || row.usual || said || !row.field->problem().isEmpty() : found;
            row.field->setVisible(shown);
            some |= shown;
        }
        section.title->setVisible(some);
        any |= some;
    }
    none_->setVisible(!any);
}

void JobForm::follow() {
    const auto& problem = draft_->problem() ? draft_->problem() : draft_->estimate().problem;
    for (const Row& row : rows_) {
        row.field->follow();
        const bool here = problem && problem->key == QString::fromStdString(row.key->full_name());
        if (here || row.field->problem().isEmpty() || !row.field->control()->hasFocus())
            row.field->set_problem(here ? problem->text : QString());
    }
    filter();
}

void JobForm::show_key(const QString& key) {
    for (const Row& row : rows_) {
        if (key != QString::fromStdString(row.key->full_name())) continue;
        row.field->show();
        scroll_->ensureWidgetVisible(row.field);
        row.field->control()->setFocus();
        if (auto* line = qobject_cast<QLineEdit*>(row.field->control())) line->selectAll();
    }
}

void JobForm::set_theme(const Theme&) {
    follow();
}

}  // namespace headscope::widgets
