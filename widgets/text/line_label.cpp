// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/line_label.h"

#include <QHelpEvent>
#include <QPainter>
#include <QStyle>
#include <QToolTip>

namespace headscope::widgets {

LineLabel::LineLabel(QWidget* parent) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
}

QSize LineLabel::minimumSizeHint() const {
    return {0, QLabel::minimumSizeHint().height()};
}

bool LineLabel::elided() const {
    return fontMetrics().horizontalAdvance(text()) > contentsRect().width();
}

bool LineLabel::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || !toolTip().isEmpty() || !elided()) return QLabel::event(event);
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text(), this);
    return true;
}

void LineLabel::paintEvent(QPaintEvent* event) {
    if (!elided()) return QLabel::paintEvent(event);
    QPainter painter(this);
    style()->drawItemText(&painter, contentsRect(), static_cast<int>(alignment()), palette(), isEnabled(),
                          fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width()), foregroundRole());
}

}  // namespace headscope::widgets
