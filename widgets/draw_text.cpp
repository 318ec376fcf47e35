// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/draw_text.h"

#include <QFontMetricsF>

#include "widgets/fonts.h"

namespace headscope::widgets {

void draw_text(QPainter* painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& colour,
               Qt::Alignment alignment, bool turned) {
    if (text.isEmpty()) return;
    painter->save();
    painter->setFont(font);
    painter->setPen(colour);
    QRectF box = rect;
    if (turned) {
        painter->translate(rect.left(), rect.bottom());
        painter->rotate(-90);
        box = QRectF(0, 0, rect.height(), rect.width());
    }
    const QFontMetricsF metrics(font);
    const double width = metrics.horizontalAdvance(text);
    double x = box.left();
    if (alignment & Qt::AlignHCenter) x += (box.width() - width) / 2;
    if (alignment & Qt::AlignRight) x += box.width() - width;
    double y = box.top();
    const double height = metrics.ascent() + metrics.descent();
    if (alignment & Qt::AlignVCenter) y += (box.height() - height) / 2;
    if (alignment & Qt::AlignBottom) y += box.height() - height;
    painter->drawText(QPointF(x, y + metrics.ascent()), text);
    painter->restore();
}

}  // namespace headscope::widgets
