// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace headscope::app {

/// Where a model is opened from. As one text it is what the window knows a model by: in cards, lists and sessions.
struct ModelPlace {
    QString path, adapter;  ///< adapter: a folder; empty: none

    /// The path alone, or both with a line end between them, which no path has that people choose.
    QString text() const { return adapter.isEmpty() ? path : path + QLatin1Char('\n') + adapter; }
    static ModelPlace of(const QString& text) {
        return {text.section(QLatin1Char('\n'), 0, 0), text.section(QLatin1Char('\n'), 1)};
    }
};

}  // namespace headscope::app
