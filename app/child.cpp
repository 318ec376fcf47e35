// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "core/base/process/os_error.h"

namespace headscope::app {
namespace {

constexpr auto patience = std::chrono::milliseconds(800);  // for a child that was asked to stop
constexpr rlim_t opening_seconds = 10, most_opening_seconds = 130;
/// Bytes checked in a second, at least: 20 000 datasets, as files of many short sequences with maps have them.
constexpr std::uint64_t checked_in_a_second = std::uint64_t{100} << 20U;
constexpr std::uint64_t opening_bytes = std::uint64_t{512} << 20U;
constexpr std::size_t most_said = std::size_t{1} << 16U;

bool is_child = false;

std::string names(const std::vector<std::filesystem::path>& files) {
    std::string text;
    for (const auto& file : files) text += (text.empty() ? "" : ", ") + shown(file);
    return text;
}

/// Terminals send Ctrl-C to parent and child; the parent alone answers it and hands it on as SIGTERM.
void become_child() {
    is_child = true;
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGHUP, SIG_IGN);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/// Keeps what the child says on its standard error, as far as one reads that, until it has closed its end of the pipe,
/// which is when it has ended. True when it had to be killed.
bool wait_for(pid_t child, int pipe, const Cancellation& cancellation, std::string& said) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point asked{};
    bool killed = false;
    for (;;) {
        struct pollfd end = {pipe, POLLIN, 0};
        if (::poll(&end, 1, 50) > 0) {
            char text[4096];
            const ssize_t size = ::read(pipe, text, sizeof text);
            if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) return killed;
            if (size > 0 && said.size() < most_said) said.append(text, static_cast<std::size_t>(size));
        }
        if (!cancellation.requested()) continue;
        if (asked == Clock::time_point{}) {
            asked = Clock::now();
            ::kill(child, SIGTERM);
        } else if (!killed && Clock::now() - asked > patience) {
            killed = ::kill(child, SIGKILL) == 0;
        }
    }
}

std::string failure_text(int signal) {
    switch (signal) {
        case SIGXCPU:
            return "found that the library does not come to an end with it";
        case SIGKILL:
            return "found that reading it was killed from outside, perhaps for want of memory";
        default:
            return std::string("found that the library itself failed on it (") + ::strsignal(signal) + ")";
    }
}

rlim_t address_space() {
    std::ifstream pages("/proc/self/statm");
    std::uint64_t count = 0;
    pages >> count;
    return count * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void set_soft(int resource, rlim_t value) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max ? value : limit.rlim_max;
    ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

}  // namespace

void continue_in_child(const std::vector<std::filesystem::path>& files, const Cancellation& cancellation) {
    int ends[2] = {-1, -1};
    std::fflush(nullptr);
    if (::pipe2(ends, O_CLOEXEC) != 0) throw os_error(errno, "headscope", "expected a pipe to a child process");
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0) {
        const int number = errno;
        ::close(ends[0]);
        ::close(ends[1]);
        throw os_error(number, "headscope", "expected a child process to read the file in");
    }
    if (child == 0) {
        // The parent hands on what the child says, unless the child crashes: then it is the C library that spoke. The
        // pipe's end closes with the process.
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        become_child();
        if (::getppid() != parent) ::_exit(1);
        return;
    }
    ::close(ends[1]);
    std::string said;
    const bool killed = wait_for(child, ends[0], cancellation, said);
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;  // perhaps before the stop reached it
    if (!done && (killed || cancellation.requested())) throw Stopped();
    if (WIFEXITED(status)) {
        std::fwrite(said.data(), 1, said.size(), stderr);
        throw ChildDone{WEXITSTATUS(status)};
    }
    throw Error(ErrorCode::format, names(files), "expected a file that the HDF5 library can read",
                failure_text(WTERMSIG(status)));
}

bool in_child() {
    return is_child;
}

OpeningLimits::OpeningLimits(const std::vector<std::filesystem::path>& files) {
    if (!is_child) return;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    std::uint64_t size_together = 0;
    for (const auto& file : files) {
        std::error_code error;
        const auto size = std::filesystem::file_size(file, error);
        if (!error && size < (std::uint64_t{1} << 40U)) size_together += size;
    }
    set_soft(RLIMIT_CPU, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                             std::min(opening_seconds + size_together / checked_in_a_second, most_opening_seconds));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
    set_soft(RLIMIT_AS, address_space() + opening_bytes + 4 * size_together);
#endif
}

OpeningLimits::~OpeningLimits() {
    if (!is_child) return;
    set_soft(RLIMIT_CPU, RLIM_INFINITY);
    set_soft(RLIMIT_AS, RLIM_INFINITY);
}

}  // namespace headscope::app
