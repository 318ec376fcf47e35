// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_edit.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>

#include "widgets/plain_edit.h"

namespace headscope::widgets {

InlineEdit::InlineEdit(QWidget* parent)
    : QWidget(parent), question_(new QLabel(this)), wrong_(new QLabel(this)), edit_(new PlainEdit(this)) {
    setObjectName(QStringLiteral("inline_edit"));
    edit_->setObjectName(QStringLiteral("inline_text"));
    edit_->setTabChangesFocus(true);
    edit_->installEventFilter(this);
    question_->setTextFormat(Qt::PlainText);
    wrong_->setObjectName(QStringLiteral("inline_wrong"));
    wrong_->setTextFormat(Qt::PlainText);
    wrong_->setWordWrap(true);
    auto* take = new QPushButton(tr("Keep"), this);
    auto* leave = new QPushButton(tr("Cancel"), this);
    take->setObjectName(QStringLiteral("inline_keep"));
    leave->setObjectName(QStringLiteral("inline_cancel"));
    take->setAccessibleName(take->text());
    leave->setAccessibleName(leave->text());
    take->setToolTip(tr("Keep this text (Enter; Ctrl+Enter in a text of several lines)"));
    leave->setToolTip(tr("Discard the change (Escape)"));
    auto* row = new QHBoxLayout;
    row->addWidget(question_);
    row->addWidget(edit_, 1);
    row->addWidget(take);
    row->addWidget(leave);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    column->addLayout(row);
    column->addWidget(wrong_);
    connect(take, &QPushButton::clicked, this, &InlineEdit::accept);
    connect(leave, &QPushButton::clicked, this, &InlineEdit::give_up);
    connect(edit_, &PlainEdit::too_long, this, [this](const QString&, qsizetype characters) {
        wrong_->setText(tr("Expected at most %1; found %2. Nothing was pasted.")
                            .arg(characters_in_words(edit_->most()), QLocale::c().toString(characters)));
        wrong_->show();
    });
    hide();
}

void InlineEdit::ask(const QString& question, const QString& text, bool lines, Take take) {
    take_ = std::move(take);
    lines_ = lines;
    question_->setText(question);
    edit_->setAccessibleName(question);
    edit_->setPlainText(text);
    edit_->setFixedHeight((lines ? 3 : 1) * edit_->fontMetrics().lineSpacing() + 12);
    edit_->setVerticalScrollBarPolicy(lines ? Qt::ScrollBarAsNeeded : Qt::ScrollBarAlwaysOff);
    wrong_->hide();
    show();
    edit_->selectAll();
    edit_->setFocus();
}

void InlineEdit::accept() {
    if (!take_) return;
    QString text = edit_->toPlainText();
    if (!lines_) text = text.simplified();
    const QString wrong = take_(text);
    wrong_->setText(wrong);
    wrong_->setVisible(!wrong.isEmpty());
    if (wrong.isEmpty()) give_up();
}

void InlineEdit::give_up() {
    take_ = {};
    hide();
}

bool InlineEdit::eventFilter(QObject* object, QEvent* event) {
    if (object == edit_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        if (enter && (!lines_ || key->modifiers() & Qt::ControlModifier)) {
            accept();
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            give_up();
            return true;
        }
    }
    return QWidget::eventFilter(object, event);
}

}  // namespace headscope::widgets
