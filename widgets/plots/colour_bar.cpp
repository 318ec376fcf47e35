// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/colour_bar.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "widgets/fonts.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/draw_text.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr double kZeroRoom = 1.5;                                       ///< heights of a line
constexpr double kBar = 9, kTick = 4, kPadding = 4, kTitlePadding = 5;  // units

/// Units below the bar where zeros have their own colour.
double zero_room(const figures::ColourScale& scale, double points) {
    return scale.zero_apart ? kZeroRoom * text_height(figure_font(points)) : 0;
}

}  // namespace

std::vector<std::pair<double, QString>> bar_ticks(const figures::ColourScale& scale, double length, double points) {
    const int wanted = std::clamp(static_cast<int>(length / (text_height(figure_font(points)) * 1.4)), 2, 7);
    std::vector<std::pair<double, QString>> ticks;
    // A range may hold fewer round numbers than are wanted.
    for (int more = 0; more < 4 && ticks.size() < 2; ++more) {
        ticks.clear();
        for (const double value : round_ticks(scale.scale, scale.minimum, scale.maximum, wanted + more)) {
            ticks.emplace_back(fraction(scale, value), number_label(value));
        }
    }
    if (ticks.size() < 2 && scale.maximum > scale.minimum)
        ticks = {{0.0, number_label(scale.minimum)}, {1.0, number_label(scale.maximum)}};
    if (scale.mark) {
        const double at = fraction(scale, scale.mark->position);
        const double room = text_height(figure_font(points)) / std::max(length, 1.0);
        std::erase_if(ticks, [&](const auto& tick) { return std::abs(tick.first - at) < room; });
        ticks.emplace_back(
            at, QString::fromStdString(scale.mark->label) + QLatin1Char(' ') + number_label(scale.mark->position));
    }
    return ticks;
}

double bar_width(const figures::ColourScale& scale, double length, double points) {
    const QFont font = figure_font(points);
    double widest = 0;
    if (scale.zero_apart) widest = text_width(font, zero_label());
    for (const auto& tick : bar_ticks(scale, length - zero_room(scale, points), points))
        widest = std::max(widest, text_width(font, tick.second));
    const double label = scale.label.empty() ? 0 : kTitlePadding + text_height(font);
    return kBar + kTick + kPadding + widest + label;
}

ColourBar::ColourBar(QCustomPlot* plot, const QRectF& area, figures::ColourScale scale, const Theme& theme,
                     double points)
    : QCPLayerable(plot), area_(area), scale_(std::move(scale)), theme_(theme), points_(points) {}

void ColourBar::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void ColourBar::draw(QCPPainter* painter) {
    const QRectF& area = area_;
    const QRectF bar(area.left(), area.top(), kBar, area.height() - zero_room(scale_, points_));
    const auto& table = colour_table(scale_.map, theme_);
    QImage image(1, kMapColours, QImage::Format_RGB32);
    for (int i = 0; i < kMapColours; ++i) image.setPixel(0, kMapColours - 1 - i, table[static_cast<std::size_t>(i)]);
    painter->setRenderHint(QPainter::SmoothPixmapTransform, false);
    painter->drawImage(bar, image);
    painter->setPen(QPen(theme_.line, 1.5));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(bar);

    if (scale_.mark) {
        const double y = bar.bottom() - fraction(scale_, scale_.mark->position) * bar.height();
        painter->setPen(QPen(theme_.accent, 2.5));
        painter->drawLine(QLineF(bar.left() - kTick, y, bar.right() + kTick, y));
    }

    const QFont font = figure_font(points_);
    double right = 0;
    for (const auto& [at, label] : bar_ticks(scale_, bar.height(), points_)) {
        const double y = bar.bottom() - at * bar.height();
        painter->setPen(QPen(theme_.line, 1.5));
        painter->drawLine(QLineF(bar.right(), y, bar.right() + kTick, y));
        const double width = text_width(font, label), height = text_height(font);
        draw_text(painter, {bar.right() + kTick + kPadding, y - height / 2, width, height}, label, font, theme_.text,
                  Qt::AlignLeft | Qt::AlignVCenter, false);
        right = std::max(right, width);
    }
    if (scale_.zero_apart) {
        const double width = text_width(font, zero_label()), height = text_height(font);
        const QRectF box(area.left(), area.bottom() - height, kBar, height);
        painter->setPen(QPen(theme_.line, 1.5));
        painter->setBrush(theme_.zero);
        painter->drawRect(box);
        draw_text(painter, {box.right() + kTick + kPadding, box.top(), width, height}, zero_label(), font, theme_.text,
                  Qt::AlignLeft | Qt::AlignVCenter, false);
        right = std::max(right, width);
    }
    if (!scale_.label.empty()) {
        const double height = text_height(font);
        draw_text(painter, {bar.right() + kTick + kPadding + right + kTitlePadding, area.top(), height, area.height()},
                  printable(scale_.label), font, theme_.text, Qt::AlignCenter, true);
    }
}

}  // namespace headscope::widgets
