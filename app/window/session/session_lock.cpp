// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session/session_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/base/error.h"

namespace headscope::app {
namespace {

constexpr int kTries = 10;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

std::shared_ptr<SessionLock> SessionLock::take(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "session.lock";
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0)
        throw Error(ErrorCode::io, path.string(), "expected to lock this file while the window is open",
                    std::string("found ") + std::strerror(errno));
    std::shared_ptr<SessionLock> lock(new SessionLock(descriptor));
    for (int tries = 1;; ++tries) {
        struct flock wish {};
        wish.l_type = F_WRLCK;
        wish.l_whence = SEEK_SET;
        if (::fcntl(descriptor, F_OFD_SETLK, &wish) == 0 || (errno != EAGAIN && errno != EACCES)) return lock;
        if (tries == kTries) return nullptr;
        std::this_thread::sleep_for(kPause);
    }
}

SessionLock::~SessionLock() {
    ::close(descriptor_);
}

}  // namespace headscope::app
