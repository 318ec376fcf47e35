// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/few_lines.h"

#include <QImage>
#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace headscope::widgets {
namespace {

constexpr double kStep = 0.75;  ///< pixels
constexpr qsizetype kMostRound = 50;
constexpr qsizetype kPart = 16;  ///< lines that are outlined together
constexpr double kBeyond = std::numeric_limits<double>::infinity();

bool finite(const QLineF& line) {
    return std::isfinite(line.x1()) && std::isfinite(line.y1()) && std::isfinite(line.x2()) && std::isfinite(line.y2());
}

/// Draws connected lines as polylines of at most `most` lines.
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

/// How much of each pixel curves cover that are drawn with a round pen.
class Coverage {
public:
    Coverage(const QRect& pixels, double radius)
        : pixels_(pixels), radius_(radius), steep_(static_cast<std::size_t>(pixels.width() * (pixels.height() + 1))) {}

    /// Lines that go on from each other, in pixels. False: one goes back to the left.
    bool take(const QLineF* begin, const QLineF* end) {
        const auto columns = static_cast<std::size_t>(pixels_.width() * kFiner);
        std::vector<double> low(columns, kBeyond), high(columns, -kBeyond);
        for (const QLineF* line = begin; line != end; ++line) {
            if (!(line->x2() >= line->x1())) return false;
            const double first = std::floor(column(line->x1())), last = std::floor(column(line->x2()));
            const double slope = last > first ? line->dy() / line->dx() : 0;
            const auto y_at = [&](double c) { return line->y1() + slope * (pixels_.x() + c / kFiner - line->x1()); };
            for (double c = std::max(0.0, first); c <= std::min(last, static_cast<double>(columns) - 1); ++c) {
                const double from = c == first ? line->y1() : y_at(c), to = c == last ? line->y2() : y_at(c + 1);
                auto &lowest = low[static_cast<std::size_t>(c)], &highest = high[static_cast<std::size_t>(c)];
                lowest = std::min({lowest, from, to});
                highest = std::max({highest, from, to});
            }
        }
        const auto reach = static_cast<std::size_t>(radius_ * kFiner);
        for (std::size_t c = 0; c < columns; ++c) {
            double top = kBeyond, bottom = -kBeyond;
            for (std::size_t at = c - std::min(c, reach); at <= std::min(columns - 1, c + reach); ++at) {
                const double far =
                    std::max(0.0, std::abs(static_cast<double>(at) - static_cast<double>(c)) - 0.5) / kFiner;
                const double more = std::sqrt(std::max(0.0, radius_ * radius_ - far * far));
                top = std::min(top, low[at] - more);
                bottom = std::max(bottom, high[at] + more);
            }
            if (top < bottom) cover(c, top, bottom);
        }
        return true;
    }

    QImage picture(const QColor& colour) const {
        std::array<QRgb, 256> tones;
        for (int i = 0; i < 256; ++i)
            tones[static_cast<std::size_t>(i)] = qPremultiply(
                qRgba(colour.red(), colour.green(), colour.blue(), static_cast<int>(std::lround(i * colour.alphaF()))));
        QImage image(pixels_.size(), QImage::Format_ARGB32_Premultiplied);
        const auto width = static_cast<std::size_t>(pixels_.width());
        std::vector<float> shares(width, 0.0F);
        for (int y = 0; y < pixels_.height(); ++y) {
            const float* more = steep_.data() + static_cast<std::size_t>(y) * width;
            auto* row = reinterpret_cast<QRgb*>(image.scanLine(y));
            for (std::size_t x = 0; x < width; ++x) {
                shares[x] += more[x];
                row[x] = tones[static_cast<std::size_t>(std::clamp(shares[x], 0.0F, 1.0F) * 255.0F + 0.5F)];
            }
        }
        return image;
    }

private:
    static constexpr int kFiner = 3;  ///< columns of a pixel

    double column(double x) const { return (x - pixels_.x()) * kFiner; }

    void cover(std::size_t c, double top, double bottom) {
        const double height = pixels_.height();
        top = std::clamp(top - pixels_.y(), 0.0, height);
        bottom = std::clamp(bottom - pixels_.y(), 0.0, height);
        const auto width = static_cast<std::size_t>(pixels_.width());
        // The share of a pixel that lies below y, and all of those under it.
        const auto from = [&](double y, double much) {
            const auto row = static_cast<std::size_t>(std::min(y, height - 1));
            const double share = static_cast<double>(row) + 1 - y;
            float* more = steep_.data() + row * width + c / kFiner;
            more[0] += static_cast<float>(much * share);
            more[width] += static_cast<float>(much * (1 - share));
        };
        from(top, 1.0 / kFiner);
        from(bottom, -1.0 / kFiner);
    }

    QRect pixels_;
    double radius_;
    std::vector<float> steep_;  ///< row by row, what a pixel has more than the one above it
};

/// False: they are not curves from left to right.
bool draw_covered(QPainter* painter, const QPen& pen, const QList<QLineF>& lines) {
    // Without the place of a widget in its window, which the painter adds.
    const QTransform to = painter->combinedTransform();
    if (to.type() > QTransform::TxScale || to.m11() <= 0) return false;
    const double radius = std::max(1.0, pen.widthF() * to.m11()) / 2;
    QList<QLineF> device;
    double left = kBeyond, top = kBeyond, right = -kBeyond, bottom = -kBeyond;
    for (const QLineF& line : lines) {
        const QLineF one = to.map(line);
        left = std::min({left, one.x1(), one.x2()});
        right = std::max({right, one.x1(), one.x2()});
        top = std::min({top, one.y1(), one.y2()});
        bottom = std::max({bottom, one.y1(), one.y2()});
        device << one;
    }
    // Curves go on beyond what is seen. A picture's size is in pixels already, a widget's is not.
    const double ratio = painter->device()->devicePixelRatioF();
    const double unit = painter->device()->devType() == QInternal::Widget ? ratio : 1;
    left = std::max(left - radius, 0.0), right = std::min(right + radius, painter->device()->width() * unit);
    top = std::max(top - radius, 0.0), bottom = std::min(bottom + radius, painter->device()->height() * unit);
    if (!(left < right && top < bottom)) return true;
    const QRect pixels = QRectF(QPointF(left, top), QPointF(right, bottom)).toAlignedRect();
    Coverage coverage(pixels, radius);
    for (qsizetype begin = 0, i = 1; i <= device.size(); ++i) {
        if (i < device.size() && lines[i].p1() == lines[i - 1].p2()) continue;
        if (!coverage.take(device.data() + begin, device.data() + i)) return false;
        begin = i;
    }
    painter->save();
    painter->setWorldMatrixEnabled(false);
    QImage picture = coverage.picture(pen.color());
    picture.setDevicePixelRatio(ratio);
    painter->drawImage(QPointF(pixels.topLeft()) / ratio, picture);
    painter->restore();
    return true;
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
    const double step = kStep / std::max(1e-3, pixels);
    QList<QLineF> few;
    if (std::all_of(lines.begin(), lines.end(), finite)) {
        few = few_lines(lines, step);
    } else {
        QList<QLineF> places;
        std::copy_if(lines.begin(), lines.end(), std::back_inserter(places), finite);
        few = few_lines(places, step);
    }
    if (few.size() <= kMostRound) return draw_all_lines(painter, std::move(pen), few);
    if (draw_covered(painter, pen, few)) return;
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
