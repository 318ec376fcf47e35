// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/error_words.h"

#include <QRegularExpression>
#include <QStringList>

namespace headscope::widgets {

QString error_words(const QByteArray& said) {
    static const QRegularExpression progress(QStringLiteral("^ *\\d+ %"));  // " 12 %  training"
    const QString name = QStringLiteral("headscope: ");
    const QStringList lines = QString::fromUtf8(said).split(QLatin1Char('\n'));
    for (auto line = lines.crbegin(); line != lines.crend(); ++line) {
        if (!line->startsWith(name)) continue;
        const QString words = line->mid(name.size());
        if (!progress.match(words).hasMatch()) return words.trimmed();
    }
    return {};
}

}  // namespace headscope::widgets
