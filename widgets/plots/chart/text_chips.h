// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QRectF>
#include <QString>
#include <vector>

#include "core/figures/figure_data.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::widgets {

/// One token where it stands; `chip` lives in the figure.
struct PlacedChip {
    QRectF rect;
    QString text;
    const figures::TextBlock::Chip* chip = nullptr;
};

/// Tokens in lines of at most `width`, the first at (0, 0); what is wider than a line is elided.
std::vector<PlacedChip> place_chips(const figures::TextBlock& block, const QFont& font, double width);

/// A text with coloured backgrounds. The figure must outlive it.
class TextChips final : public QCPLayerable {
public:
    TextChips(QCustomPlot* plot, std::vector<PlacedChip> chips, const figures::ColourScale& scale, const Theme& theme,
              double points);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    std::vector<PlacedChip> chips_;
    const figures::ColourScale& scale_;
    Theme theme_;
    double points_;
};

}  // namespace headscope::widgets
