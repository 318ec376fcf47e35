// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QRectF>
#include <QStringList>

#include "core/figures/figure_data.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// The words at both sides of links, and the room that they need beside the plot.
struct LinkTokens {
    LinkTokens(const figures::Links& links, double points, bool token_labels);
    QStringList left, right;
    double left_width = 0, right_width = 0;
};

/// Weighted lines between tokens that stand in rows of equal height at both sides of `area`. The links must outlive it.
class LinkLines final : public QCPLayerable {
public:
    LinkLines(QCustomPlot* plot, const QRectF& area, const figures::Links& links, const Theme& theme);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    QRectF area_;
    const figures::Links& links_;
    Theme theme_;
};

}  // namespace headscope::widgets
