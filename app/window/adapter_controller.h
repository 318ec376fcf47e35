// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "app/window/context.h"
#include "app/window/files/adapter_found.h"

namespace headscope::app {

/// LoRA adapters: chosen for an open checkpoint, or found where a checkpoint is opened.
class AdapterController : public QObject {
    Q_OBJECT
public:
    explicit AdapterController(Context& context);
    /// Asks how to open a folder that holds an adapter.
    void offer(const QString& path, const AdapterFound& found);

Q_SIGNALS:
    void open_wanted(const QString& path);

private:
    void choose();
    QString chosen_base() const;  ///< path of the checkpoint in the text panel; empty: none that can be run

    Context& context_;
};

}  // namespace headscope::app
