// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <utility>
#include <vector>

#include "core/figures/figure.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// What stands beside the colour of a scale's zeros, where they have one.
inline QString zero_label() {
    return QStringLiteral("= 0");
}

/// Ticks of an upright colour bar `length` units long: fraction from the bottom, label.
std::vector<std::pair<double, QString>> bar_ticks(const figures::ColourScale& scale, double length, double points);

/// Width of bar, ticks, tick labels and the turned label.
double bar_width(const figures::ColourScale& scale, double length, double points);

/// An upright colour bar that fills `area`; at its foot the colour of zeros, where the scale tells them apart.
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
