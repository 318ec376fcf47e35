// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/task_dialog.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "core/figures/options/figure_arguments.h"
#include "widgets/file_dialog.h"

namespace headscope::widgets {
namespace {

QLabel* message_line(QWidget* parent, const QString& name) {
    auto* label = new QLabel(parent);
    label->setObjectName(name);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

}  // namespace

TaskDialog::TaskDialog(const char* name, const QString& title, const QString& about, QWidget* parent)
    : QDialog(parent) {
    setObjectName(QLatin1String(name));
    setWindowTitle(title);
    resize(620, 560);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    auto* fields = new QWidget(scroll);
    form_ = new QFormLayout(fields);
    form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form_->setRowWrapPolicy(QFormLayout::WrapLongRows);
    auto* words = message_line(fields, objectName() + QStringLiteral("_about"));
    words->setText(about);
    form_->addRow(words);
    scroll->setWidget(fields);
    command_ = named(new QLineEdit(this), "command", tr("Command"), tr("The same on the command line"));
    command_->setReadOnly(true);
    message_ = message_line(this, objectName() + QStringLiteral("_message"));
    progress_words_ = message_line(this, objectName() + QStringLiteral("_progress_words"));
    progress_ = named(new QProgressBar(this), "progress", tr("Progress"), tr("Done so far"));
    progress_->setRange(0, 100);
    progress_->setTextVisible(false);
    start_ = named(new QPushButton(tr("Start"), this), "start", tr("Start"), tr("In a process of its own"));
    stop_ = named(new QPushButton(tr("Stop"), this), "stop", tr("Stop"), tr("Ends the process"));
    open_ = named(new QPushButton(tr("Open the result"), this), "open", tr("Open the result"), tr("In this window"));
    auto* close = named(new QPushButton(tr("Close"), this), "close", tr("Close"), tr("A running command goes on"));
    start_->setDefault(true);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(start_);
    buttons->addWidget(stop_);
    buttons->addWidget(open_);
    buttons->addStretch();
    buttons->addWidget(close);
    auto* column = new QVBoxLayout(this);
    column->addWidget(scroll, 1);
    column->addWidget(command_);
    column->addWidget(message_);
    column->addWidget(progress_words_);
    column->addWidget(progress_);
    column->addLayout(buttons);
    connect(start_, &QPushButton::clicked, this, [this] {
        started_ = output();
        result_.clear();
        message_->clear();
        Q_EMIT start_wanted(this->words(), started_);
    });
    connect(stop_, &QPushButton::clicked, this, &TaskDialog::stop_wanted);
    connect(open_, &QPushButton::clicked, this, [this] { Q_EMIT open_wanted(result_); });
    connect(close, &QPushButton::clicked, this, &QDialog::close);
}

QLineEdit* TaskDialog::add_path(const char* name, const QString& label, const QString& tip, Wants wants) {
    auto* edit = named(new QLineEdit(this), name, label, tip);
    auto* browse = named(new QPushButton(tr("Choose…"), this), (std::string(name) + "_browse").c_str(),
                         tr("Choose: %1").arg(label), tip);
    browse->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    row->addWidget(edit, 1);
    row->addWidget(browse);
    form_->addRow(label, row);
    connect(edit, &QLineEdit::textChanged, this, &TaskDialog::update_state);
    connect(browse, &QPushButton::clicked, this, [this, edit, label, wants] {
        FileQuestion question;
        question.title = label;
        question.mode = wants == Wants::new_folder ? QFileDialog::AnyFile
                        : wants == Wants::folder   ? QFileDialog::Directory
                                                   : QFileDialog::ExistingFile;
        ask_for_file(this, question, [edit](const QString& path) { edit->setText(path); });
    });
    return edit;
}

void TaskDialog::update_state() {
    const QString problem = this->problem();
    std::vector<std::string> arguments;
    for (const QString& word : words()) arguments.push_back(word.toStdString());
    command_->setText(QString::fromStdString(figures::shell_command(arguments)));
    command_->setCursorPosition(0);
    if (!running_ && result_.isEmpty()) message_->setText(problem);
    start_->setEnabled(!running_ && problem.isEmpty());
    start_->setToolTip(running_ && !ours_ ? tr("Another command is running: it comes first")
                                          : tr("In a process of its own"));
    stop_->setEnabled(running_ && ours_);
    open_->setVisible(!result_.isEmpty());
    progress_->setVisible(running_ && ours_);
    progress_words_->setVisible(running_ && ours_);
}

void TaskDialog::set_running(bool running, bool ours) {
    running_ = running;
    ours_ = running && ours;
    if (ours_) set_progress({});
    update_state();
}

void TaskDialog::set_progress(const QString& words) {
    const QString percent = words.section(QLatin1Char('%'), 0, 0).trimmed();
    progress_words_->setText(words.isEmpty() ? tr("Beginning…") : words);
    progress_->setValue(percent.toInt());
}

void TaskDialog::set_result(const QString& words) {
    result_ = started_;
    message_->setText(words);
    update_state();
}

void TaskDialog::set_failure(const QString& words) {
    update_state();
    message_->setText(words);
}

}  // namespace headscope::widgets
