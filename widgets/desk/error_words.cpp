// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/error_words.h"

#include <QStringList>

namespace headscope::widgets {
namespace {

/// " 12 %  training".
bool is_progress(const QString& words) {
    qsizetype at = 0;
    while (at < words.size() && words[at] == QLatin1Char(' ')) ++at;
    const qsizetype digits = at;
    while (at < words.size() && words[at].isDigit()) ++at;
    return at > digits && words.mid(at).startsWith(QLatin1String(" %"));
}

}  // namespace

QString error_words(const QByteArray& said) {
    const QString name = QStringLiteral("headscope: ");
    const QStringList lines = QString::fromUtf8(said).split(QLatin1Char('\n'));
    for (auto line = lines.crbegin(); line != lines.crend(); ++line) {
        if (!line->startsWith(name)) continue;
        const QString words = line->mid(name.size());
        if (!is_progress(words)) return words.trimmed();
    }
    return {};
}

}  // namespace headscope::widgets
