// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace headscope::app {

/// The place that a model is opened from. Cards, lists and sessions identify a model by its text.
struct ModelPlace {
    QString path, adapter;  ///< adapter: a folder; empty: none

    /// The path alone, or both with a line end between them, which people do not use in paths.
    QString text() const { return adapter.isEmpty() ? path : path + QLatin1Char('\n') + adapter; }
    static ModelPlace of(const QString& text) {
        return {text.section(QLatin1Char('\n'), 0, 0), text.section(QLatin1Char('\n'), 1)};
    }
};

}  // namespace headscope::app
