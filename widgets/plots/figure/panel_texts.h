// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "widgets/plots/figure/figure_layout.h"

namespace headscope::widgets {

/// Right of a ridge panel: width of each column of notes, in units.
std::vector<double> note_widths(const figures::Ridges& ridges, double points);

/// The texts at a placed panel's sides: axis labels, tokens, notes of ridges, words of links. `page_left`: where the
/// room for tokens begins.
void add_panel_texts(std::vector<PlacedText>& texts, const PlacedPanel& placed, double points, double page_left,
                     bool token_labels);

}  // namespace headscope::widgets
