// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "app/window/context.h"

namespace headscope::widgets {
class InterventionDialog;
}

namespace headscope::app {

/// The dialog of interventions: edits those of the text panel, reads and writes their files.
class InterventionsController : public QObject {
    Q_OBJECT
public:
    explicit InterventionsController(Context& context);

private:
    void show();
    void add_heads(const widgets::RunRequest& request);
    void make_dialog();
    void read(const QString& path);
    void save(const QString& path, const QString& toml);

    Context& context_;
    widgets::InterventionDialog* dialog_ = nullptr;
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
