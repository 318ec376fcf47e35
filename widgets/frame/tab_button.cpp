// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/frame/tab_button.h"

#include <QPainter>
#include <QStyleOption>

#include "widgets/fonts.h"

namespace headscope::widgets {
namespace {

constexpr int kTabSides = 7, kTabArrow = 12, kTabLine = 3;
constexpr double kTabHover = 0.12, kTabChosen = 0.25, kTabBehind = 0.45;  ///< of the accent

}  // namespace

TabButton::TabButton(const QString& text, Row row, QWidget* parent) : QToolButton(parent), row_(row) {
    setText(text);
    setAccessibleName(text);
    setCheckable(true);
    setAutoRaise(true);
    setFocusPolicy(Qt::TabFocus);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setAttribute(Qt::WA_Hover);
}

QFont TabButton::bold_font() const {
    QFont bold = font();
    bold.setBold(row_ == Row::groups);
    return bold;
}

QSize TabButton::sizeHint() const {
    const int width = qCeil(text_width(bold_font(), text())) + 2 * kTabSides + (menu() ? kTabArrow : 0);
    return {width, fontMetrics().height() + (row_ == Row::groups ? 14 : 8)};
}

void TabButton::set_in_front(bool in_front) {
    if (in_front == in_front_) return;
    in_front_ = in_front;
    update();
}

void TabButton::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const auto accent = [this](double share) {
        QColor colour = palette().color(QPalette::Highlight);
        colour.setAlphaF(static_cast<float>(share));
        return colour;
    };
    const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
    const bool chosen = isChecked() || isDown();
    if (underMouse() || (chosen && row_ == Row::views)) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(accent(chosen && row_ == Row::views ? kTabChosen : kTabHover));
        painter.drawRoundedRect(box, 3, 3);
    }
    if (isChecked() && row_ == Row::groups)
        painter.fillRect(QRect(4, height() - kTabLine, width() - 8, kTabLine), accent(in_front_ ? 1 : kTabBehind));
    painter.setFont(isChecked() ? bold_font() : font());
    painter.setPen(palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::WindowText));
    painter.drawText(rect().adjusted(0, 0, menu() ? -kTabArrow : 0, 0), Qt::AlignCenter, text());
    if (menu()) {
        QStyleOption arrow;
        arrow.initFrom(this);
        arrow.rect = QRect(width() - kTabArrow - 6, 0, kTabArrow, height());
        style()->drawPrimitive(QStyle::PE_IndicatorArrowDown, &arrow, &painter, this);
    }
    if (hasFocus()) {
        painter.setPen(accent(1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(box, 3, 3);
    }
}

}  // namespace headscope::widgets
