// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/line_plottables.h"

#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/chart/few_lines.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/draw_text.h"

namespace headscope::widgets {
namespace {

constexpr double kFlat = 0.6;  ///< units; lower ends of a ridge are its baseline

QColor mixed(const QColor& a, const QColor& b, double share_of_a) {
    const auto mix = [&](double x, double y) { return x * share_of_a + y * (1 - share_of_a); };
    return QColor::fromRgbF(static_cast<float>(mix(a.redF(), b.redF())),
                            static_cast<float>(mix(a.greenF(), b.greenF())),
                            static_cast<float>(mix(a.blueF(), b.blueF())));
}

}  // namespace

bool clip_segment(const QRectF& area, QPointF& a, QPointF& b) {
    const QPointF d = b - a;
    double from = 0, to = 1;
    const auto cut = [&](double direction, double distance) {
        if (direction == 0) return distance >= 0;
        const double t = distance / direction;
        if (direction < 0) {
            from = std::max(from, t);
        } else {
            to = std::min(to, t);
        }
        return from <= to;
    };
    if (!cut(-d.x(), a.x() - area.left()) || !cut(d.x(), area.right() - a.x()) || !cut(-d.y(), a.y() - area.top()) ||
        !cut(d.y(), area.bottom() - a.y())) {
        return false;
    }
    const QPointF start = a;
    a = start + d * from;
    b = start + d * to;
    return true;
}

double RidgesPlottable::across(double value) const {
    const QRectF plot = area();
    return std::clamp(mKeyAxis->coordToPixel(figures::scaled(axis_.scale, value, axis_.linear_range)), plot.left(),
                      plot.right());
}

void RidgesPlottable::draw(QCPPainter* painter) {
    const double row = std::abs(mValueAxis->coordToPixel(1) - mValueAxis->coordToPixel(0));
    for (std::size_t i = 0; i < ridges_.ridges.size(); ++i) {
        const auto& ridge = ridges_.ridges[i];
        double highest = ridges_.highest;
        if (!(highest > 0)) {
            for (const double height : ridge.heights) highest = std::max(highest, height);
        }
        draw_ridge(painter, ridge, mValueAxis->coordToPixel(static_cast<double>(i)),
                   highest > 0 ? row * ridges_.overlap / highest : 0);
    }
}

void RidgesPlottable::draw_ridge(QCPPainter* painter, const figures::Ridge& ridge, double baseline, double unit) const {
    const QColor colour = theme_.categorical(ridge.colour);
    const double top = area().top();
    QPolygonF outline;
    for (std::size_t b = 0; b < ridge.heights.size(); ++b) {
        const double left = across(ridge.edges[b]), right = across(ridge.edges[b + 1]);
        if (!(right > left)) continue;
        const double y = std::max(top, baseline - ridge.heights[b] * unit * (ridges_.mirrored ? 0.5 : 1));
        if (outline.isEmpty() && baseline - y < kFlat) continue;
        if (outline.isEmpty()) outline << QPointF(left, baseline);
        outline << QPointF(left, y) << QPointF(right, y);
    }
    while (outline.size() > 2 && baseline - outline.last().y() < kFlat) outline.removeLast();
    if (!outline.isEmpty()) {
        outline << QPointF(outline.last().x(), baseline);
        if (ridges_.mirrored) {
            for (qsizetype i = outline.size(); i-- > 0;)
                outline << QPointF(outline[i].x(), 2 * baseline - outline[i].y());
        }
        painter->setPen(Qt::NoPen);
        painter->setBrush(mixed(colour, theme_.background, theme_.dark ? 0.45 : 0.4));
        painter->drawPolygon(outline);
        painter->setBrush(Qt::NoBrush);
        painter->setPen(QPen(colour, 2.4, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin));
        painter->drawPolyline(outline);
    }
    if (ridge.minimum <= ridge.maximum) {
        painter->setPen(QPen(colour, 2.0, Qt::SolidLine, Qt::FlatCap));
        painter->drawLine(QLineF(across(ridge.minimum), baseline, across(ridge.maximum), baseline));
    }
    if (std::isfinite(ridge.mean)) {
        painter->setPen(QPen(theme_.background, 1.2));
        painter->setBrush(colour);
        painter->drawEllipse(QPointF(across(ridge.mean), baseline), 5.5, 5.5);
    }
}

QPointF CurvesPlottable::pixel(double x, double y) const {
    return {mKeyAxis->coordToPixel(figures::scaled(panel_.x.scale, x, panel_.x.linear_range)),
            mValueAxis->coordToPixel(figures::scaled(panel_.y.scale, y, panel_.y.linear_range))};
}

void CurvesPlottable::draw_labels(QCPPainter* painter) const {
    const QRectF plot = area();
    const QFont font = figure_font(points_);
    const double height = text_height(font);
    std::vector<QRectF> taken;
    for (const auto& label : curves_.labels) {
        const QPointF at = pixel(label.x, label.y);
        if (!std::isfinite(at.x() + at.y()) || !plot.adjusted(-1, -1, 1, 1).contains(at)) continue;
        const QString text = printable(label.text);
        const double width = text_width(font, text);
        if (width + 4 > plot.width()) continue;
        const double left = std::clamp(at.x() - width / 2, plot.left() + 2, plot.right() - width - 2);
        const QRectF box(left, std::max(plot.top() + 1, at.y() - height - 3), width, height);
        const auto meets = [&](const QRectF& other) { return other.intersects(box); };
        if (std::any_of(taken.begin(), taken.end(), meets)) continue;
        taken.push_back(box.adjusted(-4, 0, 4, 0));
        painter->setPen(Qt::NoPen);
        painter->setBrush(theme_.accent);
        painter->drawEllipse(at, 4.5, 4.5);
        draw_text(painter, box, text, font, theme_.text, Qt::AlignCenter, false);
    }
}

/// From the curve down to the plot's lower edge, kept inside the plot.
void CurvesPlottable::fill(QCPPainter* painter, const figures::Curve& curve, const QColor& colour) const {
    const QRectF plot = area();
    QPolygonF shape;
    const std::size_t points = std::min(curve.x.size(), curve.y.size());
    for (std::size_t i = 0; i < points; ++i) {
        const QPointF at = pixel(curve.x[i], curve.y[i]);
        if (!std::isfinite(at.x() + at.y())) continue;
        shape << QPointF(std::clamp(at.x(), plot.left(), plot.right()), std::clamp(at.y(), plot.top(), plot.bottom()));
    }
    if (shape.isEmpty()) return;
    shape << QPointF(shape.back().x(), plot.bottom()) << QPointF(shape.front().x(), plot.bottom());
    painter->setPen(Qt::NoPen);
    painter->setBrush(mixed(colour, theme_.background, 0.5));
    painter->drawPolygon(shape);
}

void CurvesPlottable::draw(QCPPainter* painter) {
    const QRectF plot = area();
    const bool on_screen = dynamic_cast<const QPixmap*>(painter->device()) != nullptr;
    for (const auto& curve : curves_.curves) {
        QColor colour = member_colour(theme_, curve.colour, curve.shade);
        if (curve.faint) colour = mixed(colour, theme_.background, 0.45);
        const std::size_t points = std::min(curve.x.size(), curve.y.size());
        if (curve.filled) fill(painter, curve, colour);
        QList<QLineF> lines;
        for (std::size_t i = 1; i < points && !curve.points; ++i) {
            QPointF a = pixel(curve.x[i - 1], curve.y[i - 1]), b = pixel(curve.x[i], curve.y[i]);
            const bool finite = std::isfinite(a.x() + a.y() + b.x() + b.y());
            if (finite && clip_segment(plot, a, b)) lines << QLineF(a, b);
        }
        const QPen pen(colour, (curve.faint || curve.thin ? 1.8 : 4) * curve.width);
        if (on_screen)
            draw_lines(painter, pen, lines);
        else
            draw_all_lines(painter, pen, lines);
        painter->setPen(QPen(colour, 2));
        for (std::size_t i = 0; i < points; ++i) {
            if (i < curve.error.size()) {
                const double dx = curve.error_of_x ? curve.error[i] : 0, dy = curve.error_of_x ? 0 : curve.error[i];
                QPointF a = pixel(curve.x[i] - dx, curve.y[i] - dy);
                QPointF b = pixel(curve.x[i] + dx, curve.y[i] + dy);
                if (std::isfinite(a.x() + a.y() + b.x() + b.y()) && clip_segment(plot, a, b))
                    painter->drawLine(QLineF(a, b));
            }
            const QPointF at = pixel(curve.x[i], curve.y[i]);
            if (!curve.points || !std::isfinite(at.x() + at.y()) || !plot.adjusted(-1, -1, 1, 1).contains(at)) continue;
            painter->setBrush(colour);
            painter->drawEllipse(at, 6 * curve.dot, 6 * curve.dot);
        }
    }
    draw_labels(painter);
}

void MarkersPlottable::draw(QCPPainter* painter) {
    const QRectF plot = area();
    for (const auto& line : lines_) {
        const double at = (line.vertical ? mKeyAxis : mValueAxis)->coordToPixel(line.place);
        QPointF a = line.vertical ? QPointF(at, plot.top()) : QPointF(plot.left(), at);
        QPointF b = line.vertical ? QPointF(at, plot.bottom()) : QPointF(plot.right(), at);
        if (!clip_segment(plot, a, b)) continue;
        QPen pen(theme_.accent, 2.6, Qt::SolidLine, Qt::FlatCap);
        pen.setDashPattern({4, 2.5});
        painter->setPen(pen);
        painter->drawLine(QLineF(a, b));
        if (line.vertical || line.label.isEmpty()) continue;
        const QFont font = figure_font(points_);
        const double height = text_height(font);
        draw_text(painter, {plot.left(), at - height - 1, plot.width() - 4, height}, line.label, font, theme_.accent,
                  Qt::AlignRight | Qt::AlignVCenter, false);
    }
}

}  // namespace headscope::widgets
