// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/run/control.h"
#include "core/run/journal_reader.h"
#include "core/workspace/live_run.h"

namespace headscope::app {

/// A run's folder as it is read while it grows. One thread at a time.
class FollowedRun {
public:
    /// Throws Error (usage) for a folder without a run.
    explicit FollowedRun(std::filesystem::path folder);

    /// Reads new events. True: the process has ended, perhaps without run.h5 (training::mend_run_file()). Throws Error,
    /// and Stopped within a CancellationScope; the next call continues there.
    bool read();
    /// True if there are unpublished events and the interval is over. Long runs are published less often because copies
    /// are expensive, but at once when they begin, pause or end.
    bool due() const;
    /// Copies the record for other threads. Releases the copy before the last, which is then freed on this thread.
    std::shared_ptr<const workspace::LiveRun> publish();
    const std::filesystem::path& folder() const { return folder_.path; }
    /// The job's name, else the folder's.
    std::string name() const;

    /// Throws Error.
    void ask(training::ControlAction action, const std::string& value);
    /// Requests of ask() that the journal does not answer yet.
    QStringList waiting();

private:
    training::RunFolder folder_;
    std::optional<training::JournalReader> reader_;  ///< always there
    workspace::LiveRun record_;
    bool news_ = true;  ///< since published_
    std::chrono::steady_clock::time_point told_;
    std::shared_ptr<const workspace::LiveRun> published_, before_;
    struct Wish {
        std::string id;
        QString action;
    };
    std::vector<Wish> wishes_;
};

/// Folders below `runs`, sorted, whose process died before it was done: of the 500 runs that were written last. Looks
/// at the ends of journals alone. Never throws but Stopped.
std::vector<std::filesystem::path> interrupted_runs(const std::filesystem::path& runs,
                                                    const Cancellation& cancellation);

}  // namespace headscope::app
