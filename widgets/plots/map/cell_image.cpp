// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/cell_image.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace headscope::widgets {
namespace {

constexpr double kGapShare = 0.07;  ///< of a tile's pitch

struct Range {
    std::int64_t begin, end;
};

/// The cells behind each of `pixels` pixels.
std::vector<Range> cells_behind(std::int64_t cells, std::int64_t pixels) {
    std::vector<Range> ranges(static_cast<std::size_t>(pixels));
    for (std::int64_t p = 0; p < pixels; ++p) {
        auto& range = ranges[static_cast<std::size_t>(p)];
        if (pixels >= cells) {
            range.begin = (2 * p + 1) * cells / (2 * pixels);
            range.end = range.begin + 1;
        } else {
            range.begin = p * cells / pixels;
            range.end = ((p + 1) * cells + pixels - 1) / pixels;
        }
    }
    return ranges;
}

float pooled(std::span<const float> values, std::int64_t columns, Range rows, Range in_row, figures::Pooling pooling) {
    float most = -std::numeric_limits<float>::infinity(), extreme = 0;
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        for (std::int64_t c = in_row.begin; c < in_row.end; ++c) {
            const float value = values[static_cast<std::size_t>(r * columns + c)];
            if (std::isnan(value)) continue;
            most = std::max(most, value);
            if (std::abs(value) > std::abs(extreme)) extreme = value;
            sum += value;
            ++count;
        }
    }
    if (count == 0) return std::numeric_limits<float>::quiet_NaN();
    if (pooling == figures::Pooling::extreme) return extreme;
    return pooling == figures::Pooling::maximum ? most : static_cast<float>(sum / static_cast<double>(count));
}

}  // namespace

void paint_cells(std::span<const float> values, std::int64_t rows, std::int64_t columns, figures::Pooling pooling,
                 const CellColours& colours, QImage& image, const QRect& target) {
    const auto across = cells_behind(columns, target.width());
    const auto down = cells_behind(rows, target.height());
    for (int y = 0; y < target.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(target.y() + y)) + target.x();
        const Range row = down[static_cast<std::size_t>(y)];
        // Enlarged: the line above may be the same.
        if (y > 0 && row.begin == down[static_cast<std::size_t>(y) - 1].begin &&
            row.end == down[static_cast<std::size_t>(y) - 1].end) {
            const auto* above = reinterpret_cast<const QRgb*>(image.constScanLine(target.y() + y - 1)) + target.x();
            std::copy(above, above + target.width(), line);
            continue;
        }
        for (int x = 0; x < target.width(); ++x) {
            const float value = pooled(values, columns, row, across[static_cast<std::size_t>(x)], pooling);
            line[x] = colours.of(value);
        }
    }
}

QImage heat_map_image(const figures::HeatMap& map, const CellColours& colours, QSize pixels, bool exact) {
    const auto side = [exact](std::int64_t cells, int available) {
        if (!exact || cells >= available) return std::max(1, available);
        return static_cast<int>(cells * std::max<std::int64_t>(1, available / cells));
    };
    QImage image(side(map.columns, pixels.width()), side(map.rows, pixels.height()), QImage::Format_RGB32);
    image.fill(colours.none);
    if (map.rows > 0 && map.columns > 0) {
        paint_cells(map.values, map.rows, map.columns, map.pooling, colours, image, image.rect());
    }
    return image;
}

QRectF mosaic_tile(const figures::Mosaic& mosaic, const QRectF& area, std::int64_t row, std::int64_t column,
                   double label_share) {
    const auto rows = static_cast<double>(mosaic.rows);
    const auto columns = static_cast<double>(mosaic.columns);
    // n tiles and n - 1 gaps fill the area.
    const double pitch_x = area.width() / (columns - kGapShare);
    const double pitch_y = area.height() / (rows - kGapShare);
    const double label = label_share * pitch_y;
    return {area.x() + static_cast<double>(column) * pitch_x, area.y() + static_cast<double>(row) * pitch_y + label,
            pitch_x * (1 - kGapShare), pitch_y * (1 - kGapShare) - label};
}

QImage mosaic_image(const figures::Mosaic& mosaic, const CellColours& colours, QRgb background, QSize pixels,
                    double label_share) {
    QImage image(std::max(1, pixels.width()), std::max(1, pixels.height()), QImage::Format_RGB32);
    image.fill(background);
    const auto cells = static_cast<std::size_t>(mosaic.size * mosaic.size);
    for (std::int64_t r = 0; r < mosaic.rows; ++r) {
        for (std::int64_t c = 0; c < mosaic.columns; ++c) {
            const auto first = static_cast<std::size_t>(r * mosaic.columns + c) * cells;
            const auto tile = std::span(mosaic.values).subspan(first, cells);
            if (std::all_of(tile.begin(), tile.end(), [](float v) { return std::isnan(v); })) continue;
            const QRectF exact = mosaic_tile(mosaic, QRectF(image.rect()), r, c, label_share);
            QRect target(
                QPoint(static_cast<int>(std::lround(exact.left())), static_cast<int>(std::lround(exact.top()))),
                QPoint(static_cast<int>(std::lround(exact.right())) - 1,
                       static_cast<int>(std::lround(exact.bottom())) - 1));
            target = target.intersected(image.rect());
            if (target.isEmpty()) continue;
            paint_cells(tile, mosaic.size, mosaic.size, mosaic.pooling, colours, image, target);
        }
    }
    return image;
}

}  // namespace headscope::widgets
