// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figures/figure_data.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// One polar plot that fills `area`: the first spoke points up, the others follow clockwise. The radar must outlive it.
class RadarChart final : public QCPLayerable {
public:
    enum class Labels { none, spokes, key };  ///< key: only axes and names, no data
    RadarChart(QCustomPlot* plot, const QRectF& area, const figures::Radar& radar, const Theme& theme, Labels labels,
               double points);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    QPointF at(std::size_t spoke, double share) const;
    void draw_grid(QCPPainter* painter) const;
    void draw_labels(QCPPainter* painter) const;
    void draw_series(QCPPainter* painter, const figures::Radar::Series& series) const;
    void draw_deviations(QCPPainter* painter, const figures::Radar::Series& series) const;
    void draw_nothing(QCPPainter* painter) const;

    const figures::Radar& radar_;
    Theme theme_;
    Labels labels_;
    double points_, radius_;
    QPointF centre_;
};

}  // namespace headscope::widgets
