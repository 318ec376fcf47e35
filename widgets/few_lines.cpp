// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/few_lines.h"

#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace headscope::widgets {
namespace {

constexpr double kStep = 0.75;  ///< pixels
constexpr qsizetype kMostRound = 50;
constexpr qsizetype kPart = 16;  ///< lines that are outlined together

/// Lines that go on from each other as one, so many together at most.
void draw_parts(QPainter* painter, const QList<QLineF>& lines, qsizetype most) {
    QPolygonF part;
    for (qsizetype i = 0; i < lines.size(); ++i) {
        if (part.isEmpty()) part << lines[i].p1();
        part << lines[i].p2();
        const bool goes_on = i + 1 < lines.size() && lines[i + 1].p1() == lines[i].p2();
        if (goes_on && part.size() <= most) continue;
        painter->drawPolyline(part);
        part.clear();
    }
}

}  // namespace

QList<QLineF> few_lines(const QList<QLineF>& lines, double step) {
    QList<QLineF> few;
    CurveColumn column;
    QPointF from;
    const auto draw_to = [&](std::size_t i) {
        const QPointF to = lines[static_cast<qsizetype>(i)].p2();
        if (to != from) few << QLineF(from, to);
        from = to;
    };
    for (qsizetype i = 0; i < lines.size(); ++i) {
        const QLineF& line = lines[i];
        const bool goes_on = i > 0 && lines[i - 1].p2() == line.p1();
        if (!goes_on) {
            column.end(draw_to);
            from = line.p1();
        } else if (std::floor(line.x1() / step) != std::floor(line.x2() / step)) {
            column.end(draw_to);
        }
        column.take(static_cast<std::size_t>(i), line.y2());
    }
    column.end(draw_to);
    return few;
}

void draw_lines(QPainter* painter, QPen pen, const QList<QLineF>& lines) {
    const double pixels = std::abs(painter->transform().m11()) * painter->device()->devicePixelRatioF();
    const QList<QLineF> few = few_lines(lines, kStep / std::max(1e-3, pixels));
    if (few.size() <= kMostRound) return draw_all_lines(painter, std::move(pen), few);
    // Ends meet within a curve: what overlaps there is seen where it is not opaque.
    pen.setCapStyle(pen.color().alpha() < 255 ? Qt::FlatCap : Qt::SquareCap);
    pen.setJoinStyle(Qt::BevelJoin);
    painter->setPen(pen);
    draw_parts(painter, few, kPart);
}

void draw_all_lines(QPainter* painter, QPen pen, const QList<QLineF>& lines) {
    pen.setCapStyle(Qt::RoundCap);
    pen.setJoinStyle(Qt::RoundJoin);
    painter->setPen(pen);
    draw_parts(painter, lines, std::numeric_limits<qsizetype>::max());
}

}  // namespace headscope::widgets
