// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>

namespace headscope::app {

/// Says which of several windows keeps the session: a lock on `session.lock` in the user's folder. It is the open
/// file's, so that it ends with the window however that ends, killed and not waited for too, and no other process that
/// gets its number is taken for it. Processes that the window starts do not have it.
class SessionLock {
public:
    /// Null: another window holds it, after a moment in which one that is just ending may go. Where the file system
    /// has no locks there is no protection. Throws Error io.
    static std::shared_ptr<SessionLock> take(const std::filesystem::path& folder);
    ~SessionLock();
    SessionLock(const SessionLock&) = delete;
    SessionLock& operator=(const SessionLock&) = delete;

private:
    explicit SessionLock(int descriptor) : descriptor_(descriptor) {}
    int descriptor_;
};

}  // namespace headscope::app
