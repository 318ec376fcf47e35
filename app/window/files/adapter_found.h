// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace headscope::app {

/// An adapter's configuration in a folder that is to be opened.
struct AdapterFound {
    QString text;  ///< what it is, for people; empty: there is none
    QString base;  ///< folder of the model that it names, if that is here; of one beside a model the folder itself
    bool alone = false;  ///< no model lies in the folder
};

/// Asks the disk.
AdapterFound find_adapter(const QString& path);

}  // namespace headscope::app
