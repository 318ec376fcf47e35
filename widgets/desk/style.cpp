// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/style.h"

#include <QPainter>
#include <QStyleOption>

namespace headscope::widgets {

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    constexpr int kDark = 128;  // of 255
    if (element != PE_IndicatorCheckBox || option->palette.color(QPalette::Window).lightness() >= kDark) return;
    painter->save();
    painter->setPen(option->palette.color(QPalette::Dark));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5));
    painter->restore();
}

}  // namespace headscope::widgets
