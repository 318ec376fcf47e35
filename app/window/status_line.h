// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QLabel;
class QStatusBar;

namespace headscope::app {

/// The status bar: messages that pass at the left; what trains, the model, threads and memory at the right.
class StatusLine {
public:
    /// `threads`: of the engine.
    StatusLine(QStatusBar* bar, int threads);
    void set_work(const QString& words);               ///< what trains, evaluates or converts
    void set_model(const QString& name);               ///< of the shown analysis
    void set_memory(double bytes);                     ///< that the process holds
    void show(const QString& text, int milliseconds);  ///< cut to the room that the labels leave

private:
    QStatusBar* bar_;
    QLabel *work_, *model_, *compute_, *memory_;
};

}  // namespace headscope::app
