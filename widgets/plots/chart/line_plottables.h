// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/plots/map/cells_plottable.h"

namespace headscope::widgets {

// Everything is clipped to the plot first: SVG files from Qt clip nothing.

/// Ridges over their baselines; the x axis of the panel says how values are scaled. The data must outlive it.
class RidgesPlottable final : public FigurePlottable {
public:
    RidgesPlottable(QCPAxis* x, QCPAxis* y, const Theme& theme, const figures::Ridges& ridges,
                    const figures::Axis& axis)
        : FigurePlottable(x, y, theme), ridges_(ridges), axis_(axis) {}

protected:
    void draw(QCPPainter* painter) override;

private:
    void draw_ridge(QCPPainter* painter, const figures::Ridge& ridge, double baseline, double unit) const;
    /// Pixel of a value of the x axis, kept inside the plot.
    double across(double value) const;

    const figures::Ridges& ridges_;
    const figures::Axis& axis_;
};

/// Lines, points, error bars and words beside points. The data must outlive it.
class CurvesPlottable final : public FigurePlottable {
public:
    CurvesPlottable(QCPAxis* x, QCPAxis* y, const Theme& theme, const figures::Curves& curves,
                    const figures::Panel& panel, double points)
        : FigurePlottable(x, y, theme), curves_(curves), panel_(panel), points_(points) {}

protected:
    void draw(QCPPainter* painter) override;

private:
    QPointF pixel(double x, double y) const;
    void draw_labels(QCPPainter* painter) const;
    void fill(QCPPainter* painter, const figures::Curve& curve, const QColor& colour) const;

    const figures::Curves& curves_;
    const figures::Panel& panel_;
    double points_;
};

/// Marker lines across the plot, at places in axis coordinates.
class MarkersPlottable final : public FigurePlottable {
public:
    struct Line {
        bool vertical;
        double place;
        QString label;  ///< of horizontal lines; the layout writes those of vertical ones
    };
    MarkersPlottable(QCPAxis* x, QCPAxis* y, const Theme& theme, std::vector<Line> lines, double points)
        : FigurePlottable(x, y, theme), lines_(std::move(lines)), points_(points) {}

protected:
    void draw(QCPPainter* painter) override;

private:
    std::vector<Line> lines_;
    double points_;
};

/// The part of segment ab inside `area`, by Liang and Barsky; false when there is none.
bool clip_segment(const QRectF& area, QPointF& a, QPointF& b);

}  // namespace headscope::widgets
