// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files/adapter_found.h"

#include <QFileInfo>
#include <filesystem>

#include "core/base/io/input_file.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/weights_in.h"

namespace headscope::app {

AdapterFound find_adapter(const QString& path) {
    const std::filesystem::path folder = path.toStdString();
    AdapterFound found;
    if (!ends_at_regular_file(folder / checkpoint::adapter_config_name)) return found;
    found.text = QString::fromStdString(checkpoint::adapter_text(folder));
    found.alone = checkpoint::adapter_alone(folder);
    if (!found.alone) {
        found.base = path;
        return found;
    }
    const QString named = QString::fromStdString(checkpoint::adapter_base(folder));
    if (named.isEmpty()) return found;
    for (const QString& place : {named, path + QLatin1Char('/') + named})
        if (found.base.isEmpty() && QFileInfo(place).isDir()) found.base = QFileInfo(place).absoluteFilePath();
    return found;
}

}  // namespace headscope::app
