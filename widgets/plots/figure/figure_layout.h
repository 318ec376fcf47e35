// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Layout of a figure, in units (fonts.h), computed before anything is drawn. Text is measured here, so that
// nothing overlaps or is cut off: labels that do not fit are thinned, tokens give way to positions.

#include <QRectF>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/plots/chart/text_chips.h"
#include "widgets/plots/figure/figure_painter.h"
#include "widgets/plots/placed.h"

namespace headscope::widgets {

struct PlacedPanel {
    const figures::Panel* panel = nullptr;
    QRectF plot;
    PlacedAxis x, y;
    std::optional<QRectF> colour_bar;
    double label_share = 0;  ///< mosaics: see mosaic_tile()
    bool spoke_labels = false;
    std::vector<PlacedChip> chips;  ///< of a text
};

struct PlacedLegendEntry {
    QRectF swatch;
    int colour = 0;
    double shade = figures::kNoShade;
};

struct FigureLayout {
    QSizeF size;
    std::vector<PlacedPanel> panels;
    std::vector<PlacedText> texts;
    std::vector<PlacedLegendEntry> legend;
    std::optional<QRectF> shared_bar;
    std::optional<QRectF> radar_key;  ///< names the spokes of radars too small to carry labels
    double tick_points = 7, text_points = 8;
};

/// The colour scale of a panel that has one.
const figures::ColourScale* colours_of(const figures::Panel& panel);

FigureLayout make_layout(const figures::FigureData& figure, const FigureStyle& style);

}  // namespace headscope::widgets
