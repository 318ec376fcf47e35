// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/few_lines.h"

#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace headscope::widgets {
namespace {

constexpr double kStep = 0.75;  ///< pixels
constexpr qsizetype kMostRound = 50;
constexpr qsizetype kPart = 16;  ///< lines that are outlined together

/// Points of a curve that share a column: the first, the lowest, the highest and the last draw all of them.
class Column {
public:
    void take(const QPointF& to) {
        if (!first_) {
            first_ = to;
            low_ = high_ = {to, order_};
        }
        last_ = to;
        if (to.y() < low_.first.y()) low_ = {to, order_};
        if (to.y() > high_.first.y()) high_ = {to, order_};
        ++order_;
    }
    /// Draws on from `from`, and begins anew.
    void end(QPointF& from, QList<QLineF>& lines) {
        if (!last_) return;
        const bool low_first = low_.second < high_.second;
        for (const QPointF& to :
             std::array{*first_, low_first ? low_.first : high_.first, low_first ? high_.first : low_.first, *last_}) {
            if (to != from) lines << QLineF(from, to);
            from = to;
        }
        first_.reset();
        last_.reset();
        order_ = 0;
    }

private:
    std::optional<QPointF> first_, last_;
    std::pair<QPointF, int> low_, high_;
    int order_ = 0;
};

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
    Column column;
    QPointF from;
    for (qsizetype i = 0; i < lines.size(); ++i) {
        const QLineF& line = lines[i];
        const bool goes_on = i > 0 && lines[i - 1].p2() == line.p1();
        if (!goes_on) {
            column.end(from, few);
            from = line.p1();
        } else if (std::floor(line.x1() / step) != std::floor(line.x2() / step)) {
            column.end(from, few);
        }
        column.take(line.p2());
    }
    column.end(from, few);
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
