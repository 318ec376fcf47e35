// SPDX-License-Identifier: GPL-3.0-or-later
// How a TokenTextArea draws its lines.
#include <QPaintEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <map>

#include "widgets/plots/colour_map.h"
#include "widgets/plots/map/cell_image.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/text_area.h"

namespace headscope::widgets {

QColor TokenTextArea::colour(std::int64_t token) const {
    if (token < 0 || token >= std::ssize(values_)) return {};
    const float value = values_[static_cast<std::size_t>(token)];
    if (std::isnan(value)) return {};
    return QColor::fromRgb(CellColours{scale_, colour_table(scale_.map, theme_), 0, theme_.zero.rgb()}.of(value));
}

QColor TokenTextArea::ink(std::int64_t token) const {
    const QColor behind = colour(token);
    if (behind.isValid()) return readable_on(behind);
    return values_.empty() ? theme_.text : theme_.muted;
}

QColor TokenTextArea::strip_colour(std::int64_t token, int row) const {
    const std::int64_t at = token * strip_rows_ + row;
    if (token < 0 || row < 0 || row >= strip_rows_ || at >= std::ssize(strip_)) return {};
    return strip_[static_cast<std::size_t>(at)];
}

/// Many cells are lower ones, so that a line stays a line.
int TokenTextArea::strip_cell() const {
    return strip_rows_ <= 4 ? 4 : strip_rows_ <= 10 ? 3 : 2;
}

void TokenTextArea::paint_strip(QPainter& painter, const QRect& box, std::int64_t token) const {
    const int height = strip_cell(), bottom = box.top() + line_height_ - 1;
    for (int row = 0; row < strip_rows_; ++row) {
        const QColor cell = strip_colour(token, row);
        if (!cell.isValid()) continue;
        painter.fillRect(QRect(box.left(), bottom - (strip_rows_ - row) * height, box.width(), height), cell);
    }
}

void TokenTextArea::paintEvent(QPaintEvent* event) {
    QPainter painter(viewport());
    painter.fillRect(event->rect(), theme_.background);
    if (!text_) return;
    const int first = std::max(0, (event->rect().top() - top_of(0)) / line_height_);
    for (auto i = static_cast<std::size_t>(first); i < breaker_.lines().size(); ++i) {
        if (top_of(i) > event->rect().bottom()) break;
        paint_line(painter, i);
    }
}

void TokenTextArea::paint_line(QPainter& painter, std::size_t index) const {
    const TokenLine& made = line(index);
    const QPoint corner(left_of(index, made), top_of(index));
    for (const auto& box : made.boxes) {
        const QColor behind = colour(box.token);
        QRect rect = box_rect(box, corner);
        if (rect.width() > 4) rect.adjust(0, 0, -1, 0);  // where one token ends
        if (behind.isValid()) painter.fillRect(rect, behind);
        paint_strip(painter, rect, box.token);
        if (!numbers_ || !behind.isValid()) continue;
        const QString number = QString::number(values_[static_cast<std::size_t>(box.token)], 'g', 2);
        if (QFontMetrics(small_font_).horizontalAdvance(number) > rect.width()) continue;
        painter.setFont(small_font_);
        painter.setPen(theme_.muted);
        painter.drawText(rect.left(), rect.bottom() + QFontMetrics(small_font_).ascent(), number);
    }
    paint_letters(painter, made, corner);
    paint_marks(painter, made, corner);
}

/// The line is drawn once for each colour that its letters have, each time only where that one belongs: letters that
/// join, or reach over to their neighbours, stay whole.
void TokenTextArea::paint_letters(QPainter& painter, const TokenLine& made, QPoint corner) const {
    const QColor between = values_.empty() ? theme_.text : theme_.muted;
    const int overhang = box_height_ / 2;
    std::map<QRgb, QRegion> places;
    QRegion rest(QRect(corner.x() - overhang, corner.y() - overhang, static_cast<int>(made.width) + 2 * overhang,
                       box_height_ + 2 * overhang));
    for (const auto& box : made.boxes) {
        const QRect rect = box_rect(box, corner).adjusted(0, -overhang, 0, overhang);
        const auto& token = text_->tokens[static_cast<std::size_t>(box.token)];
        QColor colour = ink(box.token);
        const bool quiet = token.special || is_quiet(text_->text[token.begin]);
        if (quiet && !this->colour(box.token).isValid()) colour = theme_.muted;
        if (quiet) colour.setAlphaF(0.7F);
        places[colour.rgba()] += rect;
        rest -= rect;
    }
    places[between.rgba()] += rest;
    const QPointF at(corner.x(), corner.y() + baseline_ - made.ascent);
    for (const auto& [colour, region] : places) {
        painter.save();  // taking a clip back leaves Qt's raster engine without the next one
        painter.setPen(QColor::fromRgba(colour));
        if (places.size() > 1) painter.setClipRegion(region, Qt::IntersectClip);
        made.layout.draw(&painter, at);
        painter.restore();
    }
}

void TokenTextArea::paint_marks(QPainter& painter, const TokenLine& made, QPoint corner) const {
    const auto frame = [&](const QRect& rect, const QColor& colour, double width, double radius) {
        painter.setPen(QPen(colour, width));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(QRectF(rect).adjusted(0.5, 0.5, -1.5, -0.5), radius, radius);
    };
    painter.setRenderHint(QPainter::Antialiasing, true);
    for (const auto& box : made.boxes) {
        const QRect rect = box_rect(box, corner);
        const QColor behind = colour(box.token);
        if (text_->tokens[static_cast<std::size_t>(box.token)].special) frame(rect, theme_.line, 1, box_height_ / 3.0);
        if (box.token == pointed_) frame(rect, behind.isValid() ? readable_on(behind) : theme_.text, 1, 2);
        if (box.token == underlined_) {
            painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width() - 1, 3), theme_.accent);
        }
        if (box.token == outlined_) frame(rect.adjusted(-1, -1, 1, 1), theme_.accent, 2.5, 3);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace headscope::widgets
