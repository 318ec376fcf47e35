// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figures/figure_data.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// A plottable without keys, legend or selection: what our own plottables share.
class FigurePlottable : public QCPAbstractPlottable {
public:
    FigurePlottable(QCPAxis* x, QCPAxis* y, const Theme& theme) : QCPAbstractPlottable(x, y), theme_(theme) {}

    double selectTest(const QPointF&, bool, QVariant*) const override { return -1; }
    QCPRange getKeyRange(bool& found, QCP::SignDomain) const override { return nothing(found); }
    QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override { return nothing(found); }

protected:
    void drawLegendIcon(QCPPainter*, const QRectF&) const override {}
    /// QCustomPlot's own is a unit short at the bottom; lines on the frame may be whole too.
    QRect clipRect() const override { return QCPAbstractPlottable::clipRect().adjusted(-3, -3, 3, 4); }
    QRectF area() const { return QRectF(mKeyAxis->axisRect()->rect()); }

    Theme theme_;

private:
    static QCPRange nothing(bool& found) {
        found = false;
        return {};
    }
};

/// A heat map that fills its axis rect. The map must outlive it.
class CellsPlottable final : public FigurePlottable {
public:
    CellsPlottable(QCPAxis* x, QCPAxis* y, const Theme& theme, const figures::HeatMap& map, double most_points)
        : FigurePlottable(x, y, theme), map_(map), most_points_(most_points) {}

protected:
    void draw(QCPPainter* painter) override;

private:
    void write_values(QCPPainter* painter) const;

    const figures::HeatMap& map_;
    double most_points_;
};

/// A mosaic that fills its axis rect, see mosaic_tile(). The mosaic must outlive it.
class MosaicPlottable final : public FigurePlottable {
public:
    MosaicPlottable(QCPAxis* x, QCPAxis* y, const Theme& theme, const figures::Mosaic& mosaic, double label_share,
                    double label_points)
        : FigurePlottable(x, y, theme), mosaic_(mosaic), label_share_(label_share), label_points_(label_points) {}

protected:
    void draw(QCPPainter* painter) override;

private:
    const figures::Mosaic& mosaic_;
    double label_share_, label_points_;
};

}  // namespace headscope::widgets
