// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Figures made by hand, one of each kind of panel, for tests of the painter.

#include "core/figures/figure_data.h"

namespace headscope::tests {

figures::FigureData sample_heat_map(std::int64_t side, bool tokens);
figures::FigureData sample_radars(int layers);
figures::FigureData sample_ridges(int rows);
figures::FigureData sample_curves();
figures::FigureData sample_mosaic(std::int64_t rows, std::int64_t columns, bool labelled);
/// Many panels with long titles and numbers in the cells.
figures::FigureData sample_multiples(int panels);
/// A coloured text: special, chosen, colourless and joined tokens, line breaks, words of no token between.
figures::FigureData sample_text(int tokens);
figures::FigureData sample_links(int tokens, int panels);
/// Curves in shades, one faint, with error bars at some points and words beside points.
figures::FigureData sample_labelled_curves();

}  // namespace headscope::tests
