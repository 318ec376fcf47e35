// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/window/actions.h"
#include "app/window/engine.h"
#include "app/window/files/opener.h"
#include "app/window/session/restoration.h"
#include "core/base/process/worker.h"
#include "widgets/desk/desk.h"
#include "widgets/device_box.h"
#include "widgets/mailbox.h"
#include "widgets/panels/project_tree.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"

namespace headscope::app {

/// Everything that several controllers of the window use. `window` is the parent of dialogs and the owner of actions;
/// any widget will do. Window's thread.
class Context : public QObject {
    Q_OBJECT
public:
    /// `program`: argv[0], for child processes. `threads`: 0 uses all processors.
    Context(QWidget* window, std::string program, int threads);
    ~Context() override;

    QWidget* const window;
    const std::string program;
    std::filesystem::path folder;  ///< the user's files; empty until the session controller has read it
    widgets::Desk desk;
    Engine engine;
    Opener opener;
    Restoration restoration;
    Actions actions;

    // Panels. The window puts them into docks and pages.
    QPointer<widgets::StartPage> start;
    QPointer<widgets::ProjectTree> tree;
    QPointer<widgets::TextPanel> text;

    std::optional<std::vector<widgets::DeviceCard>> devices;  ///< GPUs of the machine; none: not listed yet

    Worker disk;  ///< queries of files and folders
    /// Runs `question` on a thread of its own and waits for it briefly: a disk that does not answer delays no other.
    void ask_disk(const QString& path, const std::function<void()>& question);

    /// A line for the status bar and the log.
    void report(const QString& line) { Q_EMIT reported(line); }
    /// An error line for the log.
    void problem(const QString& line) { Q_EMIT problem_found(line); }

Q_SIGNALS:
    void reported(const QString& line);
    void problem_found(const QString& line);
    void changed();  ///< the session has to be saved
    void updated();  ///< other actions than before may be possible
    void devices_listed();

private:
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
