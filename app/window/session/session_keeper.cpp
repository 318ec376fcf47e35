// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session/session_keeper.h"

#include <fstream>
#include <iterator>

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

/// All that a save writes over.
std::string SessionKeeper::kept() const {
    std::string all;
    for (const std::filesystem::path& path : session_files(folder_)) {
        std::ifstream file(path, std::ios::binary);
        all += file ? "+" : "-";
        all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
}

FoundSession SessionKeeper::find() {
    FoundSession found;
    try {
        if (!hold()) return {};
        remove_measurements(folder_);
        found = find_session(folder_);
    } catch (const Error& error) {
        found_ = kept();
        found = read_session(folder_);
        found.problem = error.what();
    }
    if (!found.problem.empty()) to_put_aside_ = found;
    return found;
}

bool SessionKeeper::save(const Session& session, const std::vector<Recent>& recent, bool settled) {
    const bool late = !lock_;
    if (!hold()) return false;
    if (late && kept() != found_) {
        lock_.reset();
        another_window_ = true;
        return false;
    }
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
