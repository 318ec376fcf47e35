// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_strip.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/views/overview/overview_edit.h"

namespace headscope::widgets {

HeadStrip::HeadStrip(QWidget* parent)
    : QFrame(parent),
      title_(new QLabel(this)),
      words_(new QLabel(this)),
      note_(new QLabel(this)),
      switched_(new QLabel(this)),
      map_(new QPushButton(tr("Open map"), this)),
      mark_(new QPushButton(this)),
      switch_(new QPushButton(this)),
      run_line_(new QWidget(this)),
      edit_(new InlineEdit(this)) {
    setObjectName(QStringLiteral("details"));
    setAccessibleName(tr("The selected head"));
    QFont bold = title_->font();
    bold.setBold(true);
    title_->setFont(bold);
    title_->setObjectName(QStringLiteral("head_title"));
    words_->setObjectName(QStringLiteral("head_words"));
    for (QLabel* label : {title_, words_, note_, switched_}) {
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    QFont slanted = note_->font();
    slanted.setItalic(true);
    note_->setFont(slanted);
    note_->setObjectName(QStringLiteral("head_note"));
    note_->setWordWrap(true);
    note_->hide();
    for (QLabel* label : {title_, words_}) label->setWordWrap(true);
    switched_->setWordWrap(true);
    switched_->setObjectName(QStringLiteral("switched"));
    map_->setObjectName(QStringLiteral("open_map"));
    map_->setToolTip(tr("Open this head's attention map (Enter)"));
    map_->setAccessibleName(map_->text());
    mark_->setText(tr("★ Mark"));
    mark_->setObjectName(QStringLiteral("mark"));
    mark_->setToolTip(tr("Mark the head (Space), add it to a named set, or write a note"));
    switch_->setText(tr("Switch off"));
    switch_->setObjectName(QStringLiteral("switch_off"));
    switch_->setToolTip(tr("Replace the output of the selected heads by zero or by its mean in the next run"));
    for (QPushButton* button : {mark_, switch_}) button->setAccessibleName(button->text());

    auto* run = new QPushButton(tr("Run again"), run_line_);
    run->setObjectName(QStringLiteral("run_again"));
    run->setAccessibleName(run->text());
    run->setToolTip(tr("Run the same text with these heads switched off, as a new analysis"));
    auto* clear = new QPushButton(tr("Leave all on"), run_line_);
    clear->setObjectName(QStringLiteral("leave_on"));
    clear->setAccessibleName(clear->text());
    clear->setToolTip(tr("Switch all heads on again"));
    auto* run_row = new QHBoxLayout(run_line_);
    run_row->setContentsMargins(0, 0, 0, 0);
    run_row->addWidget(switched_, 1);
    run_row->addWidget(run);
    run_row->addWidget(clear);
    run_line_->hide();

    auto* text = new QVBoxLayout;
    text->setSpacing(1);
    text->addWidget(title_);
    text->addWidget(words_);
    text->addWidget(note_);
    auto* top = new QHBoxLayout;
    top->addLayout(text, 1);
    for (QPushButton* button : {mark_, switch_, map_}) top->addWidget(button, 0, Qt::AlignVCenter);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(4);
    column->addLayout(top);
    column->addWidget(edit_);
    column->addWidget(run_line_);
    connect(map_, &QPushButton::clicked, this, &HeadStrip::map_wanted);
    connect(run, &QPushButton::clicked, this, &HeadStrip::run_wanted);
    connect(clear, &QPushButton::clicked, this, &HeadStrip::clear_wanted);
}

void HeadStrip::show_head(const QString& title, const QStringList& words) {
    title_->setText(title);
    QString text = words.join(QStringLiteral(" · "));
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    words_->setText(text);
    words_->setToolTip(text);
}

void HeadStrip::show_note(const QString& note) {
    // The strip stays low: a long note is read whole in its tool tip and in the editor.
    constexpr qsizetype kShown = 240;
    QString line = note.simplified();
    if (line.size() > kShown) line = line.left(kShown) + QChar(0x2026);
    note_->setText(line);
    note_->setToolTip(QStringLiteral("<p style=\"white-space:pre-wrap\">%1</p>").arg(note.toHtmlEscaped()));
    note_->setVisible(!line.isEmpty());
}

void HeadStrip::show_switched(const QStringList& heads) {
    run_line_->setVisible(!heads.isEmpty());
    switched_->setText(tr("Off in the next run: %1").arg(heads.join(QStringLiteral(", "))));
}

void HeadStrip::set_menus(QMenu* mark, QMenu* switch_off) {
    mark_->setMenu(mark);
    mark_->setVisible(mark != nullptr);
    switch_->setMenu(switch_off);
}

}  // namespace headscope::widgets
