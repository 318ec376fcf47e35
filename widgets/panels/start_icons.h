// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QIcon>

namespace headscope::widgets {

enum class StartIcon { checkpoint, analysis, sample, training };

constexpr int kStartIcon = 36;  ///< pixels

/// What can be begun on the start page as small drawings, and what was opened without a picture of its own.
QIcon start_icon(StartIcon which, const QColor& colour);

}  // namespace headscope::widgets
