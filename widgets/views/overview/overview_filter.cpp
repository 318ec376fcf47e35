// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_filter.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/workspace/head_filter.h"

namespace headscope::widgets {
namespace {

bool is_word(QChar c) {
    return c == QLatin1Char('_') || (c.unicode() < 128 && c.isLetterOrNumber());
}

/// N of "filter, character N", from 0.
std::size_t place_of(const std::string& where) {
    const std::size_t digits = where.find_last_not_of("0123456789");
    const std::size_t number =
        std::strtoull(where.c_str() + (digits == std::string::npos ? 0 : digits + 1), nullptr, 10);
    return number > 0 ? number - 1 : 0;
}

}  // namespace

FilterField::FilterField(QWidget* parent)
    : QWidget(parent), line_(new QLineEdit(this)), message_(new QLabel(this)), completer_(new QCompleter(this)) {
    line_->setObjectName(QStringLiteral("filter"));
    line_->setPlaceholderText(tr("Filter heads: sink > 0.3 and layer < 4"));
    line_->setAccessibleName(tr("Filter of heads"));
    line_->setToolTip(tr("Use names of measures, layer and head with < <= > >= = !=, and, or, not, and brackets"));
    line_->setClearButtonEnabled(true);
    message_->setObjectName(QStringLiteral("filter_error"));
    message_->setAccessibleName(tr("Error in the filter"));
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::RichText);
    message_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    message_->hide();
    completer_->setModel(&names_);
    completer_->setWidget(line_);
    completer_->setCaseSensitivity(Qt::CaseInsensitive);
    completer_->setCompletionMode(QCompleter::PopupCompletion);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    column->addWidget(line_);
    column->addWidget(message_);
    connect(line_, &QLineEdit::textChanged, this, &FilterField::apply);
    connect(line_, &QLineEdit::textEdited, this, &FilterField::offer_names);
    connect(completer_, qOverload<const QString&>(&QCompleter::activated), this, &FilterField::take_name);
}

void FilterField::set_table(std::shared_ptr<const workspace::HeadTable> table) {
    const bool other =
        !table || !table_ || table->rows.size() != table_->rows.size() || table->columns != table_->columns;
    table_ = std::move(table);
    if (other) matches_.clear();
    QStringList names;
    if (table_) {
        for (const auto& column : table_->columns) names << QString::fromStdString(column);
        names.sort();
        names << QStringLiteral("layer") << QStringLiteral("head") << QStringLiteral("key_value_head")
              << QStringLiteral("site") << QStringLiteral("and") << QStringLiteral("or") << QStringLiteral("not");
    }
    if (names != names_.stringList()) names_.setStringList(names);
    apply();
}

QString FilterField::text() const {
    return line_->text();
}

void FilterField::set_text(const QString& text) {
    line_->setText(text);
}

std::size_t FilterField::count() const {
    if (matches_.empty()) return table_ ? table_->rows.size() : 0;
    return static_cast<std::size_t>(std::count(matches_.begin(), matches_.end(), true));
}

void FilterField::apply() {
    if (!table_) return;
    error_.clear();
    const std::string text = line_->text().toStdString();
    try {
        const workspace::HeadFilter filter(text, *table_);
        matches_.clear();
        if (text.find_first_not_of(" \t") != std::string::npos)
            for (std::size_t row = 0; row < table_->rows.size(); ++row)
                matches_.push_back(filter.matches(*table_, row));
    } catch (const Error& error) {
        show_error(QString::fromStdString(error.expected()), QString::fromStdString(error.found()),
                   place_of(error.where()));
    }
    message_->setVisible(!error_.isEmpty());
    Q_EMIT changed();
}

void FilterField::show_error(const QString& expected, const QString& found, std::size_t byte) {
    const QString text = line_->text();
    const auto bytes = text.toUtf8();
    const auto place = QString::fromUtf8(bytes.left(static_cast<qsizetype>(byte))).size();
    error_ = tr("character %1: %2, %3").arg(place + 1).arg(expected, found);
    // Some of the text around the place, which is marked; a space stands for the end.
    constexpr qsizetype kAround = 18;
    const qsizetype begin = std::max<qsizetype>(0, place - kAround);
    const QString before = (begin > 0 ? QStringLiteral("…") : QString()) + text.mid(begin, place - begin);
    const QString at = place < text.size() ? text.mid(place, 1) : QStringLiteral("\u00a0");
    const QString after = text.mid(place + 1, kAround);
    message_->setText(QStringLiteral("<tt>%1<span style=\"background-color:#c03a00;color:white\">%2</span>%3</tt>"
                                     "&nbsp; %4")
                          .arg(before.toHtmlEscaped().replace(QLatin1Char(' '), QStringLiteral("&nbsp;")),
                               at.toHtmlEscaped(), after.toHtmlEscaped(), error_.toHtmlEscaped()));
}

int FilterField::word_begin() const {
    const QString text = line_->text();
    int begin = line_->cursorPosition();
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    return begin;
}

void FilterField::offer_names() {
    const int begin = word_begin(), end = line_->cursorPosition();
    const QString word = line_->text().mid(begin, end - begin);
    const bool name = !word.isEmpty() && !word[0].isDigit();
    if (name) completer_->setCompletionPrefix(word);
    const bool whole = name && names_.stringList().contains(word) && completer_->completionCount() == 1;
    if (!name || whole || completer_->completionCount() == 0) {
        completer_->popup()->hide();
        return;
    }
    completer_->complete();
}

void FilterField::take_name(const QString& name) {
    const int begin = word_begin();
    QString text = line_->text();
    text.replace(begin, line_->cursorPosition() - begin, name);
    line_->setText(text);
    line_->setCursorPosition(begin + static_cast<int>(name.size()));
}

}  // namespace headscope::widgets
