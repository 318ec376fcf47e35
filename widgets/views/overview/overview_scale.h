// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <utility>
#include <vector>

#include "widgets/theme.h"
#include "widgets/views/overview/overview_cells.h"

namespace headscope::widgets {

/// The colour scale of the overview's heat map, lying, with its name: what a colour stands for.
class ScaleBar : public QWidget {
    Q_OBJECT
public:
    explicit ScaleBar(QWidget* parent = nullptr);

    /// `unit` of the values; `normalise` says what the colours are.
    /// Any scale of that map: fractions from the left with labels.
    void set_ticks(const QString& name, figures::ColourMap map, std::vector<std::pair<double, QString>> ticks);
    void set_scale(const HeatCells& cells, figures::Normalise normalise, const QString& unit);
    void set_theme(const Theme& theme);
    /// "Absolute: as measured" and the like, as drawn.
    const QString& name() const { return name_; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Theme theme_;
    figures::ColourMap map_ = figures::ColourMap::sequential;
    std::vector<std::pair<double, QString>> ticks_;  ///< fraction from the left, label
    QString name_;
};

}  // namespace headscope::widgets
