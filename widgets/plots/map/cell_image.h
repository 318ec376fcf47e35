// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QRect>
#include <span>

#include "core/figures/figure_data.h"
#include "widgets/plots/colour_map.h"

namespace headscope::widgets {

/// How values become pixels.
struct CellColours {
    const figures::ColourScale& scale;
    const ColourTable& table;
    QRgb none;
    QRgb zero = 0;  ///< of scales with zero_apart

    QRgb of(float value) const {
        return scale.zero_apart && value == 0 ? zero : colour_of(table, fraction(scale, double{value}), none);
    }
};

/// Paints rows x columns values into `target` of `image` (Format_RGB32). More cells than pixels: every pixel pools all
/// cells that it covers, so that a one-cell diagonal never vanishes; NaN only where all of them are. Fewer: nearest.
void paint_cells(std::span<const float> values, std::int64_t rows, std::int64_t columns, figures::Pooling pooling,
                 const CellColours& colours, QImage& image, const QRect& target);

/// A heat map for `pixels` of a device. `exact`: with fewer cells than that, a whole number of pixels a cell (for
/// vector files, whose viewers may smooth an image that they enlarge).
QImage heat_map_image(const figures::HeatMap& map, const CellColours& colours, QSize pixels, bool exact);

/// The tiles of a mosaic with gaps of the background's colour.
QImage mosaic_image(const figures::Mosaic& mosaic, const CellColours& colours, QRgb background, QSize pixels,
                    double label_share);

/// Rectangle of tile (row, column) in a mosaic drawn into `area`; label_share: part of a row's height above the tile
/// that is left for its label.
QRectF mosaic_tile(const figures::Mosaic& mosaic, const QRectF& area, std::int64_t row, std::int64_t column,
                   double label_share);

}  // namespace headscope::widgets
