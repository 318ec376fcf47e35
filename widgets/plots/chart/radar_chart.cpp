// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/radar_chart.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "widgets/fonts.h"
#include "widgets/plots/draw_text.h"

namespace headscope::widgets {

RadarChart::RadarChart(QCustomPlot* plot, const QRectF& area, const figures::Radar& radar, const Theme& theme,
                       Labels labels, double points)
    : QCPLayerable(plot), radar_(radar), theme_(theme), labels_(labels), points_(points), centre_(area.center()) {
    const double half = std::min(area.width(), area.height()) / 2;
    const QFont font = figure_font(points);
    double label = 0;
    if (labels != Labels::none) {
        for (const auto& spoke : radar.spokes) label = std::max(label, text_width(font, printable(spoke)));
        label = std::max(label, text_height(font)) + 4;
    }
    radius_ = std::max(2.0, half - 2 - label);
}

void RadarChart::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

QPointF RadarChart::at(std::size_t spoke, double share) const {
    const double angle = 2 * std::numbers::pi * static_cast<double>(spoke) / static_cast<double>(radar_.spokes.size());
    return centre_ + QPointF(std::sin(angle), -std::cos(angle)) * radius_ * share;
}

void RadarChart::draw(QCPPainter* painter) {
    if (radar_.spokes.empty()) return;
    if (!radar_.nothing.empty() && labels_ != Labels::key) return draw_nothing(painter);
    draw_grid(painter);
    if (labels_ != Labels::key) {
        for (const auto& series : radar_.series) draw_series(painter, series);
    }
    if (labels_ != Labels::none) draw_labels(painter);
}

void RadarChart::draw_grid(QCPPainter* painter) const {
    painter->setBrush(Qt::NoBrush);
    for (const double share : {0.25, 0.5, 0.75, 1.0}) {
        painter->setPen(QPen(share == 1.0 ? theme_.muted : theme_.grid, share == 1.0 ? 1.6 : 1.2));
        painter->drawEllipse(centre_, radius_ * share, radius_ * share);
    }
    painter->setPen(QPen(theme_.grid, 1.2));
    for (std::size_t i = 0; i < radar_.spokes.size(); ++i) painter->drawLine(QLineF(centre_, at(i, 1)));
}

/// The rim alone, and a word a line in it, small enough to be inside.
void RadarChart::draw_nothing(QCPPainter* painter) const {
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(theme_.grid, 1.2));
    painter->drawEllipse(centre_, radius_, radius_);
    const QStringList words = printable(radar_.nothing).split(QLatin1Char(' '));
    double points = points_;
    const auto widest = [&](const QFont& font) {
        double width = 0;
        for (const QString& word : words) width = std::max(width, text_width(font, word));
        return width;
    };
    const double room = 1.6 * radius_;
    if (const double width = widest(figure_font(points)); width > room) points *= room / width;
    const QFont font = figure_font(points);
    const double height = text_height(font);
    double top = centre_.y() - height * static_cast<double>(words.size()) / 2;
    for (const QString& word : words) {
        draw_text(painter, {centre_.x() - radius_, top, 2 * radius_, height}, word, font, theme_.muted, Qt::AlignCenter,
                  false);
        top += height;
    }
}

void RadarChart::draw_labels(QCPPainter* painter) const {
    const QFont font = figure_font(points_);
    const double height = text_height(font);
    for (std::size_t i = 0; i < radar_.spokes.size(); ++i) {
        const QString text = printable(radar_.spokes[i]);
        const double width = text_width(font, text);
        // The box touches the rim where the spoke meets it.
        const QPointF direction = (at(i, 1) - centre_) / radius_;
        const QPointF middle = at(i, 1) + QPointF(direction.x() * (width / 2 + 5), direction.y() * (height / 2 + 1));
        draw_text(painter, {middle.x() - width / 2, middle.y() - height / 2, width, height}, text, font, theme_.text,
                  Qt::AlignCenter, false);
    }
}

void RadarChart::draw_series(QCPPainter* painter, const figures::Radar::Series& series) const {
    QPolygonF polygon;
    for (std::size_t i = 0; i < std::min(radar_.spokes.size(), series.values.size()); ++i) {
        if (std::isnan(series.values[i])) continue;
        polygon << at(i, std::clamp(series.values[i] / radar_.maximum, 0.0, 1.0));
    }
    if (polygon.isEmpty()) return;
    const QColor colour = theme_.categorical(series.colour);
    QColor fill = colour;
    fill.setAlphaF(radar_.series.size() > 1 ? 0.12F : 0.28F);
    painter->setPen(QPen(colour, 3.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter->setBrush(fill);
    painter->drawPolygon(polygon);
    if (radius_ > units(8)) {
        painter->setPen(Qt::NoPen);
        painter->setBrush(colour);
        for (const QPointF& point : polygon) painter->drawEllipse(point, 3.6, 3.6);
    }
    draw_deviations(painter, series);
}

/// A bar along each spoke, cut at the middle and the rim.
void RadarChart::draw_deviations(QCPPainter* painter, const figures::Radar::Series& series) const {
    painter->setPen(QPen(theme_.text, 2, Qt::SolidLine, Qt::FlatCap));
    const std::size_t count = std::min({radar_.spokes.size(), series.values.size(), series.deviations.size()});
    for (std::size_t i = 0; i < count; ++i) {
        const double value = series.values[i], deviation = series.deviations[i];
        if (std::isnan(value) || !(deviation > 0)) continue;
        const auto share = [&](double end) { return std::clamp(end / radar_.maximum, 0.0, 1.0); };
        painter->drawLine(QLineF(at(i, share(value - deviation)), at(i, share(value + deviation))));
    }
}

}  // namespace headscope::widgets
