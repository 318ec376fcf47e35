// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/elided.h"

#include <QCache>
#include <QFontMetrics>

namespace headscope::widgets {

QString elided_middle(const QFont& font, const QString& text, int width) {
    static QCache<QString, QString> known(4000);
    const QString key = font.key() + QLatin1Char('\n') + QString::number(width) + QLatin1Char('\n') + text;
    if (const QString* there = known.object(key)) return *there;
    const QString elided = QFontMetrics(font).elidedText(text, Qt::ElideMiddle, width);
    known.insert(key, new QString(elided));
    return elided;
}

}  // namespace headscope::widgets
