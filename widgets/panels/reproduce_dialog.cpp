// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/reproduce_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <algorithm>
#include <initializer_list>

namespace headscope::widgets {

ReproduceDialog::ReproduceDialog(const std::vector<Paper>& papers, double minutes, QWidget* parent)
    : TaskDialog("reproduce_dialog", tr("Reproduce a paper"),
                 tr("Trains small models, evaluates and analyses them, draws the paper's figures, and reports which of "
                    "its claims held. It can be stopped, and resumed in the same folder."),
                 parent),
      papers_(papers) {
    paper_ = named(new QComboBox(this), "paper", tr("Paper"), tr("What is replayed"));
    paper_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    for (const Paper& paper : papers_) paper_->addItem(paper.title, paper.name);
    summary_ = new QLabel(this);
    summary_->setWordWrap(true);
    warning_ =
        named(new QLabel(this), "warning", tr("Outlook"), tr("By the last replay of this paper on this machine"));
    warning_->setTextFormat(Qt::PlainText);
    warning_->setWordWrap(true);
    warning_->hide();
    minutes_ = named(new QDoubleSpinBox(this), "minutes", tr("Minutes"),
                     tr("For all of it, with the time of earlier sessions in this folder"));
    minutes_->setRange(0.2, 100'000);
    minutes_->setDecimals(1);
    minutes_->setValue(minutes);
    seeds_ = named(new QSpinBox(this), "seeds", tr("Seeds"), tr("Of each configuration"));
    seeds_->setRange(0, 100);
    seeds_->setSpecialValueText(tr("as the minutes allow"));
    threads_ = named(new QSpinBox(this), "threads", tr("Threads"),
                     tr("Of each run; as many run side by side as there are processors for"));
    threads_->setRange(1, 4096);
    form()->addRow(tr("Paper"), paper_);
    form()->addRow(summary_);
    form()->addRow(tr("Minutes"), minutes_);
    form()->addRow(warning_);
    form()->addRow(tr("Seeds"), seeds_);
    form()->addRow(tr("Threads"), threads_);
    data_ = add_path("data", tr("Text"), tr("A file or folder in place of the King James Bible; empty: that"),
                     Wants::files);
    data_->setPlaceholderText(tr("King James Bible"));
    data_sets_ = add_path("data_sets", tr("Data sets"),
                          tr("A folder of data sets, TASK/SPLIT.jsonl, on which the models are evaluated after the "
                             "planned minutes; empty: none, or that of the earlier session"),
                          Wants::folder);
    folder_ = add_path("folder", tr("Folder"), tr("A new folder, or with Resume the one of an earlier session"),
                       Wants::new_folder);
    resume_ = named(new QCheckBox(tr("Resume the session in this folder"), this), "resume", tr("Resume"),
                    tr("Goes on where it ended, by its plan"));
    form()->addRow(resume_);
    const auto changed = [this] {
        summary_->setText(chosen().summary);
        // A plan that is followed has its own minutes, seeds, threads and data.
        const bool fresh = !resume_->isChecked();
        for (QWidget* control : std::initializer_list<QWidget*>{minutes_, seeds_, threads_, data_})
            control->setEnabled(fresh);
        update_state();
        ask_outlook();
    };
    connect(paper_, &QComboBox::currentIndexChanged, this, changed);
    connect(minutes_, &QDoubleSpinBox::valueChanged, this, changed);
    for (QSpinBox* box : {seeds_, threads_}) connect(box, &QSpinBox::valueChanged, this, changed);
    connect(resume_, &QCheckBox::toggled, this, changed);
    changed();
}

const ReproduceDialog::Paper& ReproduceDialog::chosen() const {
    return papers_[static_cast<std::size_t>(std::max(0, paper_->currentIndex()))];
}

void ReproduceDialog::ask_outlook() {
    warning_->hide();
    if (!resume_->isChecked())
        Q_EMIT outlook_wanted(chosen().name, minutes_->value(), seeds_->value(), threads_->value());
}

void ReproduceDialog::set_outlook(const QString& paper, double minutes, const QString& warning) {
    if (paper != chosen().name || minutes != minutes_->value() || resume_->isChecked()) return;  // of an older choice
    warning_->setText(warning);
    warning_->setVisible(!warning.isEmpty());
}

QStringList ReproduceDialog::words() const {
    QStringList words{QStringLiteral("reproduce"), paper_->currentData().toString(), QStringLiteral("-o"),
                      output().isEmpty() ? QStringLiteral("FOLDER") : output()};
    if (const QString sets = data_sets_->text().trimmed(); !sets.isEmpty())
        words << QStringLiteral("--data-sets") << sets;
    if (resume_->isChecked()) return words << QStringLiteral("--resume");
    words << QStringLiteral("--minutes") << QString::number(minutes_->value(), 'g', 8);
    if (seeds_->value() > 0) words << QStringLiteral("--seeds") << QString::number(seeds_->value());
    if (threads_->value() > 1) words << QStringLiteral("--threads") << QString::number(threads_->value());
    if (const QString text = data_->text().trimmed(); !text.isEmpty()) words << QStringLiteral("--data") << text;
    return words;
}

QString ReproduceDialog::problem() const {
    return output().isEmpty() ? tr("Choose a new folder") : QString();
}

QString ReproduceDialog::output() const {
    return folder_->text().trimmed();
}

}  // namespace headscope::widgets
