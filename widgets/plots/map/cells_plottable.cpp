// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/cells_plottable.h"

#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/draw_text.h"
#include "widgets/plots/map/cell_image.h"

namespace headscope::widgets {
namespace {

constexpr double kVectorDpi = 600;      ///< of images inside vector files
constexpr int kLargestImage = 6000;     ///< pixels a side
constexpr double kSmallestValue = 4.5;  ///< points

bool to_pixels(const QPainter* painter) {
    const auto* engine = painter->paintEngine();
    return engine != nullptr && engine->type() == QPaintEngine::Raster;
}

/// Draws what `make(size, exact)` gives into `area`, pixel for pixel on a raster device: nothing is sampled twice.
template <class Make>
void draw_image(QCPPainter* painter, const QRectF& area, const Make& make) {
    painter->save();
    painter->setRenderHint(QPainter::SmoothPixmapTransform, false);
    if (to_pixels(painter)) {
        const QRectF on_device = painter->combinedTransform().mapRect(area);
        const QRect pixels(
            QPoint(static_cast<int>(std::lround(on_device.left())), static_cast<int>(std::lround(on_device.top()))),
            QPoint(static_cast<int>(std::lround(on_device.right())) - 1,
                   static_cast<int>(std::lround(on_device.bottom())) - 1));
        painter->resetTransform();
        painter->drawImage(pixels.topLeft(), make(pixels.size(), false));
    } else {
        const auto side = [](double length) {
            return std::clamp(static_cast<int>(std::lround(length * kVectorDpi / kUnitsPerInch)), 1, kLargestImage);
        };
        painter->drawImage(area, make(QSize(side(area.width()), side(area.height())), true));
    }
    painter->restore();
}

/// As many decimals as distinguish values of a map with maximum `most`; brief: one fewer, ".12" for "0.12".
QString cell_text(double value, double most, bool brief) {
    const int digits = most >= 100 ? 0 : (most >= 10 ? 1 : (most >= 0.1 ? 2 : (most >= 0.01 ? 3 : 4)));
    const double size = std::abs(value);
    QString text = QString::number(size, 'f', std::max(0, digits - (brief && most >= 1 ? 1 : 0)));
    const bool zero = text.toDouble() == 0;
    if (brief && text.startsWith("0.")) text = text.mid(1);
    if (zero) text = "0";
    return value < 0 && !zero ? "−" + text : text;
}

}  // namespace

void CellsPlottable::draw(QCPPainter* painter) {
    const CellColours colours{map_.colours, colour_table(map_.colours.map, theme_), theme_.none.rgb(),
                              theme_.zero.rgb()};
    draw_image(painter, area(), [&](QSize pixels, bool exact) { return heat_map_image(map_, colours, pixels, exact); });
    if (map_.write_values) write_values(painter);
    painter->setPen(QPen(theme_.line, 1.8, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(area());
}

void CellsPlottable::write_values(QCPPainter* painter) const {
    if (map_.rows == 0 || map_.columns == 0) return;
    const QRectF plot = area();
    const double width = plot.width() / static_cast<double>(map_.columns);
    const double height = plot.height() / static_cast<double>(map_.rows);
    const auto& table = colour_table(map_.colours.map, theme_);
    double most_value = 0;
    for (const float value : map_.values) {
        if (!std::isnan(value)) most_value = std::max(most_value, std::abs(static_cast<double>(value)));
    }
    for (const bool brief : {false, true}) {
        double points = std::min(most_points_, std::floor(height * 0.62 / units_of_points(1) * 4) / 4);
        const auto widest = [&] {
            const QFont font = figure_font(points);
            double most = 0;
            for (const float value : map_.values) {
                if (!std::isnan(value)) most = std::max(most, text_width(font, cell_text(value, most_value, brief)));
            }
            return most;
        };
        for (; points >= kSmallestValue && widest() > width * 0.88; points -= 0.5) {
        }
        if (points < kSmallestValue) continue;
        const QFont font = figure_font(points);
        for (std::int64_t i = 0; i < map_.rows * map_.columns; ++i) {
            const float value = map_.values[static_cast<std::size_t>(i)];
            if (std::isnan(value)) continue;
            const QRectF cell(plot.left() + static_cast<double>(i % map_.columns) * width,
                              plot.top() + static_cast<double>(i / map_.columns) * height, width, height);
            const QColor below(colour_of(table, fraction(map_.colours, value), theme_.none.rgb()));
            draw_text(painter, cell, cell_text(value, most_value, brief), font, readable_on(below), Qt::AlignCenter,
                      false);
        }
        return;
    }
}

void MosaicPlottable::draw(QCPPainter* painter) {
    const CellColours colours{mosaic_.colours, colour_table(mosaic_.colours.map, theme_), theme_.none.rgb(),
                              theme_.zero.rgb()};
    const QRectF plot = area();
    draw_image(painter, plot, [&](QSize pixels, bool) {
        return mosaic_image(mosaic_, colours, theme_.background.rgb(), pixels, label_share_);
    });
    if (label_share_ <= 0) return;
    const QFont font = figure_font(label_points_);
    const double height = text_height(font);
    for (std::size_t i = 0; i < mosaic_.tile_labels.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const QRectF tile = mosaic_tile(mosaic_, plot, at / mosaic_.columns, at % mosaic_.columns, label_share_);
        const QString text = printable(mosaic_.tile_labels[i]);
        if (text_width(font, text) > tile.width()) continue;
        draw_text(painter, {tile.left(), tile.top() - height, tile.width(), height}, text, font, theme_.text,
                  Qt::AlignLeft | Qt::AlignVCenter, false);
    }
}

}  // namespace headscope::widgets
