// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/style.h"

#include <QPainter>
#include <QStyleOption>

namespace headscope::widgets {

void Style::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                          const QWidget* widget) const {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    constexpr int kDark = 128;  // of 255
    const bool button = element == PE_PanelButtonTool || element == PE_PanelButtonCommand;
    if (button && option->state & State_On && option->state & State_Enabled) {
        // Fusion's own shade of what is switched on is hardly another than that of what is not.
        QColor on = option->palette.color(QPalette::Highlight);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(on);
        on.setAlphaF(option->palette.color(QPalette::Window).lightness() < kDark ? 0.55F : 0.3F);
        painter->setBrush(on);
        painter->drawRoundedRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
        painter->restore();
        return;
    }
    if (element != PE_IndicatorCheckBox || option->palette.color(QPalette::Window).lightness() >= kDark) return;
    painter->save();
    painter->setPen(option->palette.color(QPalette::Dark));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(QRectF(option->rect).adjusted(0.5, 0.5, -0.5, -0.5));
    painter->restore();
}

}  // namespace headscope::widgets
