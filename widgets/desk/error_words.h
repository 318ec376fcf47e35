// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QString>

namespace headscope::widgets {

/// The error that a headscope process printed: the last line of `said`, its standard error, that begins with the
/// program's name and is no progress; without the name. Empty without such a line.
QString error_words(const QByteArray& said);

}  // namespace headscope::widgets
