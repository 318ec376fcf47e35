// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "widgets/plots/placed.h"

namespace headscope::widgets {

/// Places the cells of a table from (left, y) on, no further right than `right`: in `points`, or smaller where it would
/// not fit, words without their middle where it would be too small. Appends them to `texts`; returns the table's lower
/// end.
double place_text_table(std::vector<PlacedText>& texts, const figures::TextTable& table, double left, double right,
                        double y, double points);

}  // namespace headscope::widgets
