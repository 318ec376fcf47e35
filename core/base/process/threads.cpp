// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/threads.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/os_error.h"

namespace headscope {
namespace {

constexpr int kLowest = 19;
constexpr int kTries = 10;
constexpr std::chrono::milliseconds kPause{20};
std::atomic<int> niceness_of_new{-1};  // negative: as the starting thread

}  // namespace

void set_new_threads_nice(int niceness) {
    niceness_of_new = std::min(::getpriority(PRIO_PROCESS, 0) + niceness, kLowest);
}

int niceness_of_new_threads() {
    return niceness_of_new;
}

std::thread start_thread(std::function<void()> work, bool gives_way) {
    try {
        const int niceness = niceness_of_new;
        if (niceness < 0 || !gives_way) return std::thread(std::move(work));
        return std::thread([niceness, work = std::move(work)] {
            const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
            if (::getpriority(PRIO_PROCESS, thread) < niceness) ::setpriority(PRIO_PROCESS, thread, niceness);
            work();
        });
    } catch (const std::system_error& refusal) {
        throw Error(ErrorCode::io, "threads", "expected to start a thread (see ulimit -u)",
                    os_error_text(refusal.code().value()));
    }
}

void make_nice(pid_t process, int niceness) {
    const auto id = static_cast<id_t>(process);
    if (niceness > ::getpriority(PRIO_PROCESS, id)) ::setpriority(PRIO_PROCESS, id, niceness);
    const pid_t own = process == 0 ? ::getpid() : process;
    if (::getsid(own) != own) return;  // a shell's, and whatever else runs in it
    const int file = ::open(("/proc/" + std::to_string(own) + "/autogroup").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return;  // a system without such groups
    // "/autogroup-843 nice 0"
    std::array<char, 128> words{};
    const bool known = ::read(file, words.data(), words.size() - 1) > 0;
    const char* number = std::strstr(words.data(), " nice ");
    const std::string wish = std::to_string(niceness) + "\n";
    // Linux grants ten such requests a second, over all processes.
    if (known && number && niceness > std::atoi(number + 6))
        for (int tries = 0; ::write(file, wish.data(), wish.size()) < 0 && errno == EAGAIN && tries < kTries; ++tries)
            std::this_thread::sleep_for(kPause);
    ::close(file);
}

void start_threads(std::vector<std::thread>& threads, std::int64_t count, const std::function<void()>& work) {
    const std::size_t before = threads.size();
    threads.reserve(before + static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    for (std::int64_t i = 0; i < count; ++i) {
        try {
            threads.push_back(start_thread(work));
        } catch (const Error&) {
            if (threads.size() == before) throw;
            return;
        }
    }
}

}  // namespace headscope
