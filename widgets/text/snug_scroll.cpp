// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/snug_scroll.h"

#include <QEvent>
#include <QLayout>
#include <algorithm>

namespace headscope::widgets {
namespace {

constexpr int kLeastHeight = 120;  ///< pixels

}  // namespace

SnugScroll::SnugScroll(QWidget* parent) : QScrollArea(parent) {
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setWidgetResizable(false);
}

void SnugScroll::hold(QWidget* panel) {
    setWidget(panel);  // which watches it with eventFilter()
    panel->setAutoFillBackground(false);
    fit();
}

void SnugScroll::fit() {
    if (!widget() || !widget()->layout()) return;
    const QLayout* layout = widget()->layout();
    const int width = viewport()->width();
    const int least =
        layout->hasHeightForWidth() ? layout->minimumHeightForWidth(width) : layout->minimumSize().height();
    widget()->resize(width, std::max(least, viewport()->height()));
}

void SnugScroll::resizeEvent(QResizeEvent* event) {
    QScrollArea::resizeEvent(event);
    fit();
}

bool SnugScroll::eventFilter(QObject* object, QEvent* event) {
    if (object == widget() && event->type() == QEvent::LayoutRequest) fit();
    return QScrollArea::eventFilter(object, event);
}

QSize SnugScroll::sizeHint() const {
    return widget() ? widget()->sizeHint() : QScrollArea::sizeHint();
}

QSize SnugScroll::minimumSizeHint() const {
    return {widget() ? widget()->minimumSizeHint().width() : 0, kLeastHeight};
}

}  // namespace headscope::widgets
