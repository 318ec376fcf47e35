// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/own_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"

namespace headscope::app {
namespace {

using Clock = std::chrono::steady_clock;

std::string last_line_of(const std::filesystem::path& log) {
    std::string text;
    try {
        text = read_small_file(log, std::uint64_t{64} << 20U, "log");
    } catch (const std::exception&) {
        return "";
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    const std::size_t begin = text.find_last_of("\r\n");
    return escaped(text.substr(begin == std::string::npos ? 0 : begin + 1), 400);
}

/// Between fork and exec: calls that are safe there, and no others.
[[noreturn]] void become(char* const* words, int log, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
    ::setpgid(0, 0);  // Ctrl-C comes through the parent, once
    ::execvp(words[0], words);
    ::_exit(127);
}

}  // namespace

OwnRun run_own_program(const std::vector<std::string>& arguments, const std::filesystem::path& log,
                       const Cancellation& cancellation, const std::vector<std::string>& before) {
    cancellation.check();
    std::error_code ignored;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    std::vector<std::string> words = before;
    words.push_back(self);
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);

    const int descriptor = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) throw os_error(errno, log, "expected to write this log");
    const auto start = Clock::now();
    const pid_t parent = ::getpid(), child = ::fork();
    if (child == 0) become(pointers.data(), descriptor, parent);
    ::close(descriptor);
    if (child < 0) throw Error(ErrorCode::io, "child process", "expected to start one", os_error_text(errno));

    int status = 0;
    rusage used{};
    bool asked = false;
    auto asked_at = start;
    for (;;) {
        const pid_t ended = ::wait4(child, &status, WNOHANG, &used);
        if (ended == child || (ended < 0 && errno != EINTR)) break;
        if (cancellation.requested() && !asked) {
            ::kill(child, SIGINT);
            asked = true;
            asked_at = Clock::now();
        }
        // A training process takes a snapshot before it ends.
        if (asked && Clock::now() - asked_at > std::chrono::seconds(60)) ::kill(child, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    cancellation.check();
    OwnRun run;
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.peak_bytes = 1024.0 * static_cast<double>(used.ru_maxrss);
    run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run.status != 0) run.last_line = last_line_of(log);
    return run;
}

}  // namespace headscope::app
