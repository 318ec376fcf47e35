// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>

#include "widgets/theme.h"

namespace headscope::widgets {

/// The window's colours to go with a figure theme: controls, text, selections, tool tips.
QPalette make_palette(const Theme& theme);

}  // namespace headscope::widgets
