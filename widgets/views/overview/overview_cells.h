// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <span>
#include <vector>

#include "core/figures/figure_options.h"
#include "core/workspace/head_table.h"

namespace headscope::widgets {

/// How the numbers of one column are written: all with the decimals that its largest asks for, those too small for
/// that with a power of ten. "–": does not exist.
struct NumberFormat {
    int decimals = 3;
    QString text(double value) const;
};
/// `digits`: of the largest.
NumberFormat number_format(std::span<const double> values, int digits = 3);

/// One measure of all heads as colours. Vectors go by the table's rows; NaN: none.
struct HeatCells {
    std::vector<double> values, deviation;  ///< deviation: empty for one sequence
    std::vector<double> fractions;          ///< 0..1 in the colour scale
    figures::ColourScale scale;             ///< absolute: of the values; else from 0 to 1
    double lowest = 0, highest = 0;         ///< of all values; NaN without any
    NumberFormat format;
};

/// absolute: as the recipe `indicators` scales it; minmax: by the range of all heads; layer: by the range of a site's.
HeatCells heat_cells(const workspace::HeadTable& table, std::size_t column, figures::Normalise normalise);

/// "12 nats", "0.3 ± 0.02".
QString value_with_deviation(const HeatCells& cells, std::size_t row, std::string_view unit);

}  // namespace headscope::widgets
