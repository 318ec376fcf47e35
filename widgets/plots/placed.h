// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Texts and axes whose place is known, in units (fonts.h).

#include <QFont>
#include <QRectF>
#include <QString>
#include <utility>
#include <vector>

#include "core/figures/figure_data.h"

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

}  // namespace headscope::widgets
