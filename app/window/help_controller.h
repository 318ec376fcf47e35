// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "app/window/context.h"

namespace headscope::widgets {
class GuideWindow;
}

namespace headscope::app {

class PagesController;

/// The user guide, which is part of the program, the lists of keys and commands, and the version.
class HelpController : public QObject {
    Q_OBJECT
public:
    HelpController(Context& context, const PagesController& pages);

private:
    void show_guide();
    void show_commands();
    void show_keys();
    void show_version();

    Context& context_;
    const PagesController& pages_;
    widgets::GuideWindow* guide_ = nullptr;
};

}  // namespace headscope::app
