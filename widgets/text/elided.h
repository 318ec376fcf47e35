// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QString>

namespace headscope::widgets {

/// `text` with dots in its middle where it is wider than `width` pixels. Remembered: a list of a hundred names is
/// shaped once, and not each time when it is compared with what is shown. For the window's thread.
QString elided_middle(const QFont& font, const QString& text, int width);

}  // namespace headscope::widgets
