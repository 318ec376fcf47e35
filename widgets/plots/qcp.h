// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The only place that includes qcustomplot.h. The project is built with QT_NO_KEYWORDS (LibTorch's headers break on
// Qt's `slots`), QCustomPlot's header needs the keywords: lend them to it and take them back.

#define signals Q_SIGNALS
#define slots Q_SLOTS
#define emit Q_EMIT
#define foreach Q_FOREACH
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#include <qcustomplot.h>
#pragma GCC diagnostic pop
#undef signals
#undef slots
#undef emit
#undef foreach
