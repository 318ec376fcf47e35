// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_delegate.h"

#include <QApplication>
#include <QPainter>

#include "widgets/views/overview/overview_table.h"

namespace headscope::widgets {

void ShareDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    QStyleOptionViewItem item = option;
    initStyleOption(&item, index);
    item.state &= ~QStyle::State_MouseOver;
    const QStyle* style = item.widget ? item.widget->style() : QApplication::style();
    style->drawPrimitive(QStyle::PE_PanelItemViewItem, &item, painter, item.widget);
    const bool selected = item.state & QStyle::State_Selected;
    const QVariant share = index.data(HeadTableModel::kShareRole);
    if (share.isValid() && !selected) {
        QColor bar = item.palette.color(QPalette::Highlight);
        bar.setAlphaF(0.22F);
        const QRectF room = QRectF(item.rect).adjusted(2, 2, -2, -2);
        painter->fillRect(QRectF(room.left(), room.top(), room.width() * share.toDouble(), room.height()), bar);
    }
    painter->setPen(item.palette.color(selected ? QPalette::HighlightedText : QPalette::Text));
    painter->setFont(item.font);
    const QRect room = item.rect.adjusted(4, 0, -6, 0);
    painter->drawText(room, static_cast<int>(item.displayAlignment),
                      item.fontMetrics.elidedText(item.text, Qt::ElideRight, room.width()));
}

}  // namespace headscope::widgets
