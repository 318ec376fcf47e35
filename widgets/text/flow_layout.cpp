// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/flow_layout.h"

#include <algorithm>

namespace headscope::widgets {

FlowLayout::FlowLayout(QWidget* parent, int spacing) : QLayout(parent), spacing_(spacing) {
    setContentsMargins(0, 0, 0, 0);
}

FlowLayout::~FlowLayout() {
    qDeleteAll(items_);
}

QLayoutItem* FlowLayout::takeAt(int index) {
    return index >= 0 && index < items_.size() ? items_.takeAt(index) : nullptr;
}

void FlowLayout::setGeometry(const QRect& rect) {
    QLayout::setGeometry(rect);
    place(rect, true);
}

QSize FlowLayout::sizeHint() const {
    int width = 0, height = 0;
    for (const QLayoutItem* item : items_) {
        if (item->isEmpty()) continue;
        width += item->sizeHint().width() + spacing_;
        height = std::max(height, item->sizeHint().height());
    }
    const QMargins edge = contentsMargins();
    return {width + edge.left() + edge.right(), height + edge.top() + edge.bottom()};
}

QSize FlowLayout::minimumSize() const {
    QSize size;
    for (const QLayoutItem* item : items_)
        if (!item->isEmpty()) size = size.expandedTo(item->minimumSize());
    const QMargins edge = contentsMargins();
    return size + QSize(edge.left() + edge.right(), edge.top() + edge.bottom());
}

/// Returns the height that is needed.
int FlowLayout::place(const QRect& rect, bool move) const {
    const QMargins edge = contentsMargins();
    const QRect area = rect.marginsRemoved(edge);
    int x = area.left(), y = area.top(), row_height = 0;
    QList<std::pair<QLayoutItem*, QRect>> row;
    const auto close_row = [&] {
        for (const auto& [item, box] : row) {
            const int lower = (row_height - box.height()) / 2;  // controls of a row stand on one middle line
            if (move) item->setGeometry(box.translated(0, lower));
        }
        row.clear();
    };
    for (QLayoutItem* item : items_) {
        if (item->isEmpty()) continue;
        QSize size = item->sizeHint();
        size.setWidth(std::min(size.width(), std::max(area.width(), item->minimumSize().width())));
        if (x > area.left() && x + size.width() > area.left() + area.width()) {
            close_row();
            x = area.left();
            y += row_height + spacing_;
            row_height = 0;
        }
        row.append({item, QRect(QPoint(x, y), size)});
        x += size.width() + spacing_;
        row_height = std::max(row_height, size.height());
    }
    close_row();
    return y + row_height - rect.top() + edge.bottom();
}

}  // namespace headscope::widgets
