// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session_keeper.h"

#include "app/window/launch.h"
#include "core/base/error.h"

namespace headscope::app {

/// Throws Error: it is not known whose the session is.
bool SessionKeeper::hold() {
    if (!lock_ && !another_window_) {
        make_data_folder(folder_);
        lock_ = SessionLock::take(folder_);
        another_window_ = !lock_;
    }
    return !another_window_;
}

FoundSession SessionKeeper::find() {
    FoundSession found;
    try {
        if (!hold()) return {};
        remove_measurements(folder_);
        found = find_session(folder_);
    } catch (const Error& error) {
        found = read_session(folder_);
        found.problem = error.what();
    }
    if (!found.problem.empty()) to_put_aside_ = found;
    return found;
}

bool SessionKeeper::save(const Session& session, const std::vector<Recent>& recent, bool settled) {
    if (!hold()) return false;
    if (to_put_aside_) {
        if (settled) to_put_aside_->died = false;
        put_aside(folder_, *to_put_aside_);
        to_put_aside_.reset();
    }
    save_session(folder_, session);
    if (settled) drop_lost_session(folder_);
    save_recent(folder_, recent);
    return true;
}

}  // namespace headscope::app
