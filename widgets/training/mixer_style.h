// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QIcon>
#include <QString>
#include <string>

#include "widgets/theme.h"

namespace headscope::widgets {

/// A mixer's color in the layout editor, the legend and the cost curves; muted for unknown names.
QColor mixer_color(const Theme& theme, const std::string& mixer);
/// "Non-approximate" of "non_approximate".
QString mixer_title(const std::string& mixer);
/// A small square of a color, for lists and legends.
QIcon swatch(const QColor& color);

}  // namespace headscope::widgets
