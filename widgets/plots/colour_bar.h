// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <utility>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// Label beside the color of a scale's zeros.
inline QString zero_label() {
    return QStringLiteral("= 0");
}

/// Ticks of an upright colour bar `length` units long: fraction from the bottom, label.
std::vector<std::pair<double, QString>> bar_ticks(const figures::ColourScale& scale, double length, double points);

/// Width of bar, ticks, tick labels and the turned label.
double bar_width(const figures::ColourScale& scale, double length, double points);

/// An upright color bar that fills `area`; at its foot the color of zeros, if the scale sets them apart.
class ColourBar final : public QCPLayerable {
public:
    ColourBar(QCustomPlot* plot, const QRectF& area, figures::ColourScale scale, const Theme& theme, double points);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    QRectF area_;
    figures::ColourScale scale_;
    Theme theme_;
    double points_;
};

}  // namespace headscope::widgets
