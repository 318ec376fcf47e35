// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace headscope::app {

/// The adapter in a folder.
struct AdapterFound {
    QString text;        ///< a description for people; empty: no adapter
    QString base;        ///< folder of the model that it names, if it exists; the folder itself if it holds a model
    bool alone = false;  ///< the folder holds no model
};

/// Reads the disk: not for the window's thread.
AdapterFound find_adapter(const QString& path);

}  // namespace headscope::app
