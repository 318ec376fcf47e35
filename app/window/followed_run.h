// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/training/control.h"
#include "core/training/journal_reader.h"
#include "core/workspace/live_run.h"

namespace headscope::app {

/// A run's folder as it is read while it grows. One thread at a time.
class FollowedRun {
public:
    /// Throws Error (usage) for a folder without a run.
    explicit FollowedRun(std::filesystem::path folder);

    /// What came since; true: something did, or the process came or went. Throws Error, Stopped never.
    bool read();
    /// What is known, as a value for others.
    std::shared_ptr<const workspace::LiveRun> published() const;
    /// The job's name, else the folder's.
    std::string name() const;

    /// Throws Error.
    void ask(training::ControlAction action, const std::string& value);
    /// Wishes that were written here and that the journal does not answer yet.
    QStringList waiting();

private:
    training::RunFolder folder_;
    training::JournalReader reader_;
    workspace::LiveRun record_;
    struct Wish {
        std::string id;
        QString action;
    };
    std::vector<Wish> wishes_;
};

/// Folders below `runs` whose process died before it was done. Never throws but Stopped.
std::vector<std::filesystem::path> interrupted_runs(const std::filesystem::path& runs,
                                                    const Cancellation& cancellation);

}  // namespace headscope::app
