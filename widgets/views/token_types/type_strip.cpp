// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/token_types/type_strip.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

namespace headscope::widgets {

TypeStrip::TypeStrip(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void TypeStrip::set_types(std::vector<std::int32_t> types, std::int64_t chosen) {
    types_ = std::move(types);
    chosen_ = chosen;
    const auto softmax = std::count(types_.begin(), types_.end(), 0);
    setAccessibleDescription(tr("%1 of %2 chunks use softmax attention").arg(softmax).arg(types_.size()));
    update();
}

void TypeStrip::set_theme(const Theme& theme) {
    theme_ = theme;
    update();
}

double TypeStrip::left_of(std::size_t chunk) const {
    return static_cast<double>(chunk) * width() / static_cast<double>(std::max<std::size_t>(1, types_.size()));
}

std::int64_t TypeStrip::chunk_at(QPoint place) const {
    if (types_.empty() || !rect().contains(place)) return -1;
    const auto chunk = static_cast<std::int64_t>(place.x()) * std::ssize(types_) / std::max(1, width());
    return std::clamp<std::int64_t>(chunk, 0, std::ssize(types_) - 1);
}

void TypeStrip::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.none);
    for (std::size_t begin = 0; begin < types_.size();) {
        std::size_t end = begin + 1;
        while (end < types_.size() && types_[end] == types_[begin]) ++end;
        const QRectF run(left_of(begin), 0, left_of(end) - left_of(begin), height());
        const std::int32_t type = types_[begin];
        begin = end;
        if (type < 0) continue;
        const QColor colour = type_colour(type, theme_);
        painter.fillRect(run, colour);
        if (run.width() < 2 * fontMetrics().horizontalAdvance(type_letter(type))) continue;
        painter.setPen(readable_on(colour));
        painter.drawText(run, Qt::AlignCenter, type_letter(type));
    }
    // Ends of chunks, unless they would cover the chunks.
    painter.setPen(theme_.background);
    if (left_of(1) > 4)
        for (std::size_t chunk = 1; chunk < types_.size(); ++chunk)
            painter.drawLine(QPointF(left_of(chunk), 0), QPointF(left_of(chunk), height()));
    if (chosen_ < 0 || chosen_ >= std::ssize(types_)) return;
    const auto at = static_cast<std::size_t>(chosen_);
    painter.setPen(QPen(theme_.accent, 2));
    painter.drawRect(QRectF(left_of(at), 0, left_of(at + 1) - left_of(at), height()).adjusted(1, 1, -1, -1));
}

void TypeStrip::mousePressEvent(QMouseEvent* event) {
    const std::int64_t chunk = chunk_at(event->pos());
    if (event->button() == Qt::LeftButton && chunk >= 0) Q_EMIT chosen(chunk);
}

}  // namespace headscope::widgets
