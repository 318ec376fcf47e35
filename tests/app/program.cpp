// SPDX-License-Identifier: GPL-3.0-or-later
#include "program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <csignal>
#include <regex>
#include <sstream>
#include <thread>

#include "files.h"

extern char** environ;

namespace headscope::testing {
namespace {

namespace fs = std::filesystem;

fs::path capture_path(const char* what) {
    static std::atomic<int> number{0};
    return fs::temp_directory_path() /
           ("headscope-app-" + std::to_string(getpid()) + "-" + std::to_string(number++) + "-" + what);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
    result.push_back(nullptr);
    return result;
}

/// Ours over what is there: the first entry of a name counts for getenv.
std::vector<std::string> environment(const std::vector<std::string>& ours) {
    std::vector<std::string> result = ours;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string name = std::string(*entry).substr(0, std::string(*entry).find('=') + 1);
        bool replaced = name == "HEADSCOPE_KERNELS=" || name == "HEADSCOPE_RESOURCES=";
        for (const auto& own : ours) replaced = replaced || own.compare(0, name.size(), name) == 0;
        if (!replaced) result.emplace_back(*entry);
    }
    return result;
}

}  // namespace

std::vector<std::string> Outcome::messages() const {
    static const std::regex progress("headscope: +[0-9]+ %.*");
    std::vector<std::string> lines;
    std::istringstream stream(err);
    for (std::string line; std::getline(stream, line);)
        if (!std::regex_match(line, progress)) lines.push_back(line);
    return lines;
}

Process::Process(const std::vector<std::string>& arguments, Settings settings)
    : settings_(std::move(settings)), out_(capture_path("out")), err_(capture_path("err")) {
    std::vector<std::string> words;
    if (!settings_.shell_prefix.empty()) words = {"/bin/sh", "-c", settings_.shell_prefix + " exec \"$0\" \"$@\""};
    words.emplace_back(HEADSCOPE_PROGRAM);
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::vector<std::string> variables = environment(settings_.environment);

    const fs::path out = settings_.standard_output.empty() ? out_ : settings_.standard_output;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, settings_.standard_input.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), flags, 0600);
    start_ = std::chrono::steady_clock::now();
    const int error = posix_spawn(&process_, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                                  pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    INFO("cannot run " << words.front());
    REQUIRE(error == 0);
}

Process::~Process() {
    if (running()) {
        ::kill(process_, SIGKILL);
        int wait_status = 0;
        waitpid(process_, &wait_status, 0);
    }
    std::error_code ignored;
    fs::remove(out_, ignored);
    fs::remove(err_, ignored);
}

void Process::reap(int wait_status, const struct rusage& usage) {
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    processor_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    megabytes_ = static_cast<double>(usage.ru_maxrss) / 1024;
    status_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    process_ = -1;
}

bool Process::running() {
    if (process_ < 0) return false;
    int wait_status = 0;
    struct rusage usage {};
    if (wait4(process_, &wait_status, WNOHANG, &usage) != process_) return true;
    reap(wait_status, usage);
    return false;
}

void Process::signal(int number) const {
    if (process_ > 0) ::kill(process_, number);
}

std::string Process::messages_so_far() const {
    return read_file(err_);
}

Outcome Process::wait() {
    Outcome outcome;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(settings_.seconds * kSlowness);
    while (running()) {
        if (std::chrono::steady_clock::now() > limit) {
            outcome.timed_out = true;
            signal(SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    outcome.processor_seconds = processor_seconds_;
    outcome.megabytes = megabytes_;
    outcome.status = status_;
    if (settings_.standard_output.empty()) outcome.out = read_file(out_);
    outcome.err = read_file(err_);
    return outcome;
}

Outcome run_headscope(const std::vector<std::string>& arguments, Settings settings) {
    return Process(arguments, std::move(settings)).wait();
}

}  // namespace headscope::testing
