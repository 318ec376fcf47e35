// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineF>
#include <QList>
#include <algorithm>
#include <array>
#include <cstddef>

class QPainter;
class QPen;

namespace headscope::widgets {

/// Points of a curve that share a column: the first, the lowest, the highest and the last draw all of them.
class CurveColumn {
public:
    /// The point of that index; indexes rise.
    void take(std::size_t i, double y) {
        if (empty_) marks_.fill(i);
        if (empty_ || y < low_) {
            marks_[1] = i;
            low_ = y;
        }
        if (empty_ || y > high_) {
            marks_[2] = i;
            high_ = y;
        }
        marks_[3] = i;
        empty_ = false;
    }
    /// Passes each collected line to `use`, in order, and clears the collection.
    template <class Use>
    void end(Use use) {
        if (empty_) return;
        std::sort(marks_.begin(), marks_.end());
        std::for_each(marks_.begin(), std::unique(marks_.begin(), marks_.end()), use);
        empty_ = true;
    }

private:
    std::array<std::size_t, 4> marks_{};  ///< first, lowest, highest, last
    double low_ = 0, high_ = 0;
    bool empty_ = true;
};

/// Lines that cover what `lines` do, column by column of `step` units, each going on from the one before where the
/// original does. Those within a column become four at most, which end where the first, the lowest, the highest and the
/// last point are.
QList<QLineF> few_lines(const QList<QLineF>& lines, double step);

/// Draws lines for the screen, thousands of them fast. The outline of a wild curve of 2400 points as one shape takes
/// Qt's rasteriser 62 ms; thinned, in parts of sixteen lines with plain joins, it takes 3.5 ms; as the area that they
/// cover, where they go from left to right, half a millisecond. Ends and joins are round where there are few. A line
/// with an end at no place (not finite) is left out.
void draw_lines(QPainter* painter, QPen pen, const QList<QLineF>& lines);

/// Draws every line, curve by curve, with round ends and joins: for files.
void draw_all_lines(QPainter* painter, QPen pen, const QList<QLineF>& lines);

}  // namespace headscope::widgets
