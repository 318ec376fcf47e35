// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <vector>

#include "widgets/plots/map/map_plot.h"

namespace headscope::widgets {

/// A row of the map as a curve above it, a column as a curve to its right; they share the map's axes and its colour
/// scale, so that a height and a colour say the same. Where a pixel covers many cells the value furthest from nothing
/// is drawn: a line one cell wide never vanishes. Drawn on a layer of their own.
class MapProfiles : public QObject {
    Q_OBJECT
public:
    /// `plot` owns this.
    explicit MapProfiles(MapPlot* plot);

    void set_shown(bool shown);
    bool shown() const { return shown_; }
    void set_look(const figures::ColourScale& scale, const Theme& theme);

    struct Curve {
        std::vector<float> values;  ///< one a key of the row, one a query of the column; NaN: not allowed
        QString title;
    };
    /// Empty curves: nothing is drawn.
    void set_curves(Curve row, Curve column);
    const Curve& row() const { return row_; }
    const Curve& column() const { return column_; }

private:
    class Plottable;
    QCPAxisRect* make_rect(bool above);
    void update_ticks();

    MapPlot* plot_;
    QCPAxisRect *above_ = nullptr, *beside_ = nullptr;
    QCPMarginGroup* margins_;
    QMargins plain_;  ///< of the map alone, at least
    figures::ColourScale scale_;
    Theme theme_;
    Curve row_, column_;
    bool shown_ = false;
};

}  // namespace headscope::widgets
