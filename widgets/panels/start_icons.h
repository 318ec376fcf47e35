// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>

namespace headscope::widgets {

enum class StartIcon { checkpoint, analysis, sample, training };

constexpr int kStartIcon = 36;  ///< pixels

/// Small drawings for the start page's entries and for recent items without a thumbnail.
QIcon start_icon(StartIcon which, const QColor& colour);

}  // namespace headscope::widgets
