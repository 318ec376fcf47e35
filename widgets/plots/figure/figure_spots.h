// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Places of a laid-out figure's parts: for pointers, read-outs and marks. Units of the layout.

#include <QLineF>
#include <QList>
#include <QPainterPath>
#include <QString>

#include "widgets/plots/figure/figure_layout.h"

namespace headscope::widgets {

struct FigureSpot {
    int panel = -1;   ///< -1: none
    int row = -1;     ///< a ridge, a curve, a row of cells; -1: none
    int column = -1;  ///< of cells, or a point of a curve; -1: none
    figures::Subject subject;
    QString text;  ///< what is there, with numbers; empty: nothing to say
};

/// The part of the figure at `place`. Titles and the room beside ridges belong to their panels.
FigureSpot spot_at(const FigureLayout& layout, QPointF place);

/// A line about one ridge or curve as a whole; empty where there is none.
QString row_text(const figures::Panel& panel, int row);

/// A part of a figure: a panel (row -1), a ridge, a curve, a cell.
struct FigureMark {
    int panel = -1, row = -1, column = -1;
    bool operator==(const FigureMark&) const = default;
};

/// The parts of a figure that show that head of that site of an analysis, and name one or the other themselves.
std::vector<FigureMark> marks_of(const figures::FigureData& figure, std::int64_t analysis, std::int64_t site,
                                 std::int64_t head);

/// The outline of a panel, with its title.
QRectF panel_area(const FigureLayout& layout, int panel);
/// A cell of a heat map; empty where there is none.
QRectF cell_area(const FigureLayout& layout, int panel, int row, int column);
/// The band of a ridge, or the line of a curve, for marking it; empty where there is none.
QPainterPath row_path(const FigureLayout& layout, int panel, int row);
/// The latter's lines one by one.
QList<QLineF> row_lines(const FigureLayout& layout, int panel, int row);

/// The value at a place of an axis: the inverse of figures::scaled().
double unscaled(figures::ScaleKind scale, double place, double linear_range);

}  // namespace headscope::widgets
