// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QStringList>
#include <QTimer>
#include <memory>
#include <string>

#include "widgets/mailbox.h"

namespace headscope {
class Spawned;
}
namespace headscope::app {

/// Runs one command of the program at a time as a child at a low priority: a conversion, a replay. It ends with the
/// window, in order. Window's thread.
class TaskService : public QObject {
    Q_OBJECT
public:
    explicit TaskService(std::string program, QObject* parent = nullptr);
    ~TaskService() override;

    bool running() const { return process_ != nullptr; }
    const QString& title() const { return title_; }
    const QString& progress() const { return progress_; }
    /// `words` of the command line; `title` names it to people. Nothing happens while another one runs.
    void start(const QString& title, const QStringList& words);
    void stop();

Q_SIGNALS:
    void changed();                      ///< it began, came further, or ended
    void ended(const QString& failure);  ///< empty: it is done
    void stopped();

private:
    void end();

    std::string program_;
    QString title_, progress_;
    std::shared_ptr<Spawned> process_;
    QTimer look_;  ///< at the progress that the process prints
    bool stopped_ = false;
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
