// SPDX-License-Identifier: GPL-3.0-or-later
// What a LinesCanvas draws on top of its image of lines.
#include <QLocale>
#include <QPaintEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "widgets/views/lines/lines_canvas.h"
#include "widgets/views/lines/lines_layout.h"

namespace headscope::widgets {

void LinesCanvas::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), theme_.background);
    if (content_.queries.empty()) return;
    painter.setRenderHint(QPainter::Antialiasing);
    const int scrolled = verticalScrollBar()->value();
    painter.setOpacity(pointed_ ? 0.12 : 1);
    painter.drawImage(QPointF(left_, -scrolled), image_);
    painter.setOpacity(1);
    if (pointed_) {
        painter.save();
        painter.translate(0, -scrolled);
        for (const WeightLine& line : pointed_lines()) draw_line(painter, line, 1.2);
        painter.restore();
    }
    paint_labels(painter, Side::query);
    paint_labels(painter, Side::key);
    paint_outside(painter);
    if (pointed_) paint_weights(painter);
}

void LinesCanvas::paint_labels(QPainter& painter, Side side) const {
    const QFontMetrics metrics(viewport()->font());
    const auto chosen = side == Side::query ? query_ : key_;
    const auto& all = labels(side);
    for (std::int64_t row = 0; row < std::ssize(all); ++row) {
        const std::int64_t token = first(side) + row;
        const QRect rect = label_rect(side, token);
        if (rect.bottom() < 0) continue;
        if (rect.top() > viewport()->height()) break;
        const bool here = pointed_ && *pointed_ == Token(side, token);
        const bool faded = pointed_ && pointed_->first == side && !here;
        const QRect inner = rect.adjusted(kLabelEdge, 0, -kLabelEdge, 0);
        const auto align = Qt::AlignVCenter | (side == Side::query ? Qt::AlignRight : Qt::AlignLeft);
        const QString text = metrics.elidedText(all[static_cast<std::size_t>(row)], Qt::ElideRight, inner.width());
        const QRect box = metrics.boundingRect(inner, static_cast<int>(align), text).adjusted(-4, 0, 4, 0);
        if (here) {
            QColor behind = theme_.grid;
            painter.setPen(Qt::NoPen);
            painter.setBrush(behind);
            painter.drawRoundedRect(box, 4, 4);
        }
        const auto& regions = side == Side::query ? content_.query_regions : content_.key_regions;
        if (row < std::ssize(regions) && regions[static_cast<std::size_t>(row)] != 0) {
            // A pair's texts: an edge between the labels and the lines.
            const int at = side == Side::query ? rect.right() - kRegionWidth : rect.left();
            painter.fillRect(QRect(at, rect.top(), kRegionWidth, rect.height()),
                             region_colour(regions[static_cast<std::size_t>(row)], theme_));
        }
        painter.setPen(faded ? theme_.muted : theme_.text);
        painter.drawText(inner, static_cast<int>(align), text);
        painter.setBrush(Qt::NoBrush);
        if (chosen == token && side == Side::query) {
            painter.setPen(QPen(theme_.accent, 2));
            painter.drawRoundedRect(QRectF(box).adjusted(0, 0.5, 0, -0.5), 4, 4);
        } else if (chosen == token) {
            painter.fillRect(QRect(box.left() + 4, rect.bottom() - 1, box.width() - 8, 2), theme_.accent);
        }
    }
}

QString LinesCanvas::outside_text(bool before) const {
    const std::int64_t count =
        before ? content_.window.k_begin : std::max<std::int64_t>(0, content_.all_keys - content_.window.k_end);
    const QString number = QLocale().toString(static_cast<qlonglong>(count));
    return before ? tr("⋯ %1 tokens before").arg(number) : tr("⋯ %1 tokens after").arg(number);
}

void LinesCanvas::paint_outside(QPainter& painter) const {
    QFont font = viewport()->font();
    font.setItalic(true);
    painter.setFont(font);
    painter.setPen(theme_.muted);
    const auto write = [&](std::int64_t row, bool before) {
        const int top = row_top(Side::key, row) - verticalScrollBar()->value();
        painter.drawText(QRect(right_ + kLabelEdge, top, label_width_ + kNumberWidth, row_height_),
                         Qt::AlignLeft | Qt::AlignVCenter, outside_text(before));
    };
    if (content_.window.k_begin > 0) write(-1, true);
    if (content_.window.k_end < content_.all_keys) write(std::ssize(content_.keys), false);
    painter.setFont(viewport()->font());
}

/// Beside each token of the other side its weight, a square a head: the fuller, the larger.
void LinesCanvas::paint_weights(QPainter& painter) const {
    const Side other = pointed_->first == Side::query ? Side::key : Side::query;
    const QFontMetrics metrics(viewport()->font());
    std::vector<float> largest(labels(other).size(), 0.0F);
    for (const WeightLine& line : pointed_lines()) {
        const std::int64_t row = other == Side::key ? line.key : line.query;
        if (row < 0 || row >= std::ssize(largest)) continue;
        auto& most = largest[static_cast<std::size_t>(row)];
        most = std::max(most, line.weight);
    }
    for (std::int64_t row = 0; row < std::ssize(largest); ++row) {
        const float weight = largest[static_cast<std::size_t>(row)];
        if (weight <= 0) continue;
        const QRect rect = label_rect(other, first(other) + row);
        const QString number = QString::number(static_cast<double>(weight), 'f', weight < 0.1F ? 3 : 2);
        const int name = std::min(metrics.horizontalAdvance(labels(other)[static_cast<std::size_t>(row)]),
                                  label_width_ - 2 * kLabelEdge);
        QRect place =
            other == Side::key
                ? QRect(rect.left() + 2 * kLabelEdge + name, rect.top(), kNumberWidth, row_height_)
                : QRect(rect.right() - 2 * kLabelEdge - name - kNumberWidth, rect.top(), kNumberWidth, row_height_);
        painter.setPen(theme_.accent);
        painter.drawText(
            place, static_cast<int>(Qt::AlignVCenter | (other == Side::key ? Qt::AlignLeft : Qt::AlignRight)), number);
    }
}

}  // namespace headscope::widgets
