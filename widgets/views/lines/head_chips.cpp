// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/lines/head_chips.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "widgets/text/flow_layout.h"

namespace headscope::widgets {

HeadChip::HeadChip(int head, QWidget* parent) : QAbstractButton(parent), theme_(make_theme(false)) {
    setText(QString::number(head));
    setObjectName(QStringLiteral("head_%1").arg(head));
    setAccessibleName(tr("Head %1").arg(head));
    setToolTip(
        tr("Head %1\nClick or Space shows or hides it · Alt+click or Shift+Space shows only this one").arg(head));
    setCheckable(true);
    setFocusPolicy(Qt::TabFocus);
}

void HeadChip::set_look(const QColor& colour, bool selected, const Theme& theme) {
    colour_ = colour;
    selected_ = selected;
    theme_ = theme;
    const QSignalBlocker quiet(this);
    setChecked(colour.isValid());
    update();
}

QSize HeadChip::sizeHint() const {
    const QFontMetrics metrics(font());
    return {std::max(28, metrics.horizontalAdvance(text()) + 14), metrics.height() + 6};
}

void HeadChip::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton && event->modifiers().testFlag(Qt::AltModifier)) {
        Q_EMIT pressed_alone();
        return;
    }
    QAbstractButton::mousePressEvent(event);
}

void HeadChip::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Space && event->modifiers() == Qt::ShiftModifier) {
        if (!event->isAutoRepeat()) Q_EMIT pressed_alone();
        return;
    }
    QAbstractButton::keyPressEvent(event);
}

void HeadChip::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF box = QRectF(rect()).adjusted(1.5, 1.5, -1.5, -1.5);
    const double radius = box.height() / 2;
    const bool shown = isChecked() && colour_.isValid();
    painter.setPen(QPen(shown ? colour_ : theme_.muted, 1));
    painter.setBrush(shown ? QBrush(colour_) : QBrush(Qt::NoBrush));
    painter.drawRoundedRect(box, radius, radius);
    if (hasFocus() || underMouse()) {
        painter.setPen(QPen(hasFocus() ? theme_.text : theme_.line, hasFocus() ? 2 : 1.5));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(box, radius, radius);
    }
    QFont font = this->font();
    font.setBold(selected_);
    font.setUnderline(selected_);
    painter.setFont(font);
    painter.setPen(shown ? readable_on(colour_) : theme_.text);
    painter.drawText(rect(), Qt::AlignCenter, text());
}

HeadChips::HeadChips(QWidget* parent) : QWidget(parent) {
    setObjectName(QStringLiteral("head_strip"));
    setAccessibleName(tr("Heads shown"));
    new FlowLayout(this, 4);
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void HeadChips::set_heads(int count, const std::map<int, QColor>& colours, int selected, const Theme& theme) {
    while (static_cast<int>(chips_.size()) > count) {
        layout()->removeWidget(chips_.back());
        chips_.back()->deleteLater();
        chips_.pop_back();
    }
    while (static_cast<int>(chips_.size()) < count) {
        const int head = static_cast<int>(chips_.size());
        auto* chip = new HeadChip(head, this);
        connect(chip, &QAbstractButton::toggled, this, [this, head](bool on) { Q_EMIT toggled(head, on); });
        connect(chip, &HeadChip::pressed_alone, this, [this, head] { Q_EMIT only(head); });
        layout()->addWidget(chip);
        chips_.push_back(chip);
        chip->show();
    }
    for (int head = 0; head < count; ++head) {
        const auto colour = colours.find(head);
        chip(head)->set_look(colour == colours.end() ? QColor() : colour->second, head == selected, theme);
    }
}

}  // namespace headscope::widgets
