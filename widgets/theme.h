// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>
#include <string>

namespace headscope::widgets {

/// Colours of a figure. Categorical colours are Okabe and Ito's (jfly.uni-koeln.de/color), in an order in which
/// neighbours differ in lightness too, without the yellow that paper swallows.
struct Theme {
    bool dark = false;
    QColor background, text, muted, line, grid, none, accent;
    QColor zero;  ///< a weight that is exactly 0, where colour maps leave room for it: beside small ones and none
    std::string sequential_map = "indigo", diverging_map = "blue-red";  ///< names of figures::colour_maps()

    /// Any index; wraps around.
    QColor categorical(int index) const;
};

Theme make_theme(bool dark);

/// Color of the first (1) and second (2) text of a pair.
QColor region_colour(int region, const Theme& theme);

/// Color of NAtS-L's chunks: softmax (0) and linear (1) attention, one darker than the other in gray, too.
QColor type_colour(int type, const Theme& theme);
/// "S" or "L".
QString type_letter(int type);

/// Black or white, whichever reads better on `background`.
QColor readable_on(const QColor& background);

}  // namespace headscope::widgets
