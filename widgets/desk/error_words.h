// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QString>

namespace headscope::widgets {

/// What a headscope process told as its error: the last line of `said`, its standard error, that has the program's name
/// in front and is none of progress; without the name. Empty: there is none.
QString error_words(const QByteArray& said);

}  // namespace headscope::widgets
