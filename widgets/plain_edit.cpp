// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plain_edit.h"

#include <QCoreApplication>
#include <QLocale>
#include <QMimeData>

namespace headscope::widgets {

void PlainEdit::insertFromMimeData(const QMimeData* source) {
    const QString text = source->text();
    const QTextCursor cursor = textCursor();
    const qsizetype stays = document()->characterCount() - 1 - (cursor.selectionEnd() - cursor.selectionStart());
    if (stays + text.size() > most_) {
        Q_EMIT too_long(text, stays + text.size());
        return;
    }
    QPlainTextEdit::insertFromMimeData(source);
}

QString characters_in_words(qsizetype count) {
    return QCoreApplication::translate("PlainEdit", "%1 characters").arg(QLocale::c().toString(count));
}

}  // namespace headscope::widgets
