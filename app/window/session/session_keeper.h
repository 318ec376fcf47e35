// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/session/session.h"
#include "app/window/session/session_lock.h"

namespace headscope::app {

/// Keeps one window's session in the user's folder, and holds the lock that says whose session is kept. Where the disk
/// is full or not to be written on each save tries again, and writes over nothing that is still to be put aside or was
/// never read. Not for two threads at once.
class SessionKeeper {
public:
    explicit SessionKeeper(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// Reads the kept session; its `problem` is why nothing can be written yet. Empty if another window keeps one.
    FoundSession find();
    /// `settled`: what was lost before is part of `session`, or was declined. False: another window is the keeper, or
    /// was before this one could be, or the folder could not be read at the beginning; nothing was written. Throws
    /// Error.
    bool save(const Session& session, const std::vector<Recent>& recent, bool settled);
    bool another_window() const { return another_window_; }

private:
    bool hold();
    std::string kept() const;

    std::filesystem::path folder_;
    std::shared_ptr<SessionLock> lock_;
    std::optional<FoundSession> to_put_aside_;
    std::string found_;  ///< kept() as find() saw it
    bool another_window_ = false;
};

}  // namespace headscope::app
