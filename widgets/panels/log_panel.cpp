// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/log_panel.h"

#include <QScrollBar>
#include <QTime>

namespace headscope::widgets {

LogPanel::LogPanel(QWidget* parent) : QPlainTextEdit(parent) {
    setReadOnly(true);
    setObjectName(QStringLiteral("log"));
    setAccessibleName(tr("Log"));
    setMaximumBlockCount(4000);
    setLineWrapMode(QPlainTextEdit::WidgetWidth);
    setPlaceholderText(tr("No messages yet"));
}

/// Keeps the last lines in sight when the panel is opened or resized.
void LogPanel::resizeEvent(QResizeEvent* event) {
    QPlainTextEdit::resizeEvent(event);
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

void LogPanel::note(const QString& text) {
    add(text, false);
}

void LogPanel::problem(const QString& text) {
    ++problems_;
    add(text, true);
    Q_EMIT problem_noted(text);
}

void LogPanel::add(const QString& text, bool problem) {
    const QString line = QTime::currentTime().toString(QStringLiteral("HH:mm:ss  ")) + text.toHtmlEscaped();
    appendHtml(problem ? QStringLiteral("<b>%1</b>").arg(line) : QStringLiteral("<span>%1</span>").arg(line));
}

}  // namespace headscope::widgets
