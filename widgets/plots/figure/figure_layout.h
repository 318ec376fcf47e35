// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Layout of a figure, in units (fonts.h), computed before anything is drawn. Text is measured here, so that
// nothing overlaps or is cut off: labels that do not fit are thinned, tokens give way to positions.

#include <QFont>
#include <QRectF>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/plots/chart/text_chips.h"
#include "widgets/plots/figure/figure_painter.h"

namespace headscope::widgets {

enum class Ink { text, muted, accent };

/// One line of text. Turned: reads upwards, `rect` is the place that it fills on the page.
struct PlacedText {
    QRectF rect;
    QString text;
    QFont font;
    Qt::Alignment alignment = Qt::AlignLeft | Qt::AlignVCenter;
    Ink ink = Ink::text;
    bool turned = false;
};

/// One axis as drawn: everything in scaled() coordinates.
struct PlacedAxis {
    double low = 0, high = 1;  ///< at the left or bottom end, at the right or top end
    std::vector<std::pair<double, QString>> ticks;
    bool tokens = false;  ///< ticks are cell labels: turned on x, no tick marks
    double token_points = 0;
    bool labels = true;
    double place(const figures::Axis& axis, double value) const;
    bool cells = false;  ///< positions count cells
};

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
