// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/spawned.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "core/base/process/os_error.h"
#include "core/base/process/threads.h"

namespace headscope {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 20U;
constexpr const char* kNothing = "/dev/null";
constexpr int kSignalled = 128;  // as a shell says it

/// posix_spawn's two lists, and their end.
class Plan {
public:
    Plan() {
        ::posix_spawn_file_actions_init(&files);
        ::posix_spawnattr_init(&attributes);
    }
    ~Plan() {
        ::posix_spawn_file_actions_destroy(&files);
        ::posix_spawnattr_destroy(&attributes);
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    posix_spawn_file_actions_t files{};
    posix_spawnattr_t attributes{};
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
}

std::string all_of(int file) {
    std::string text;
    std::array<char, 65536> part;
    while (file >= 0 && text.size() < kMostKept) {
        const ssize_t count = ::pread(file, part.data(), part.size(), static_cast<off_t>(text.size()));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
}

}  // namespace

std::shared_ptr<Spawned> Spawned::start(const SpawnOptions& options, std::function<void()> ended) {
    const std::shared_ptr<Spawned> spawned(new Spawned);
    spawned->take(spawned->begin(options));
    try {
        start_thread([spawned, ended = std::move(ended)] {
            spawned->reap();
            if (ended) ended();
        }).detach();
    } catch (const Error&) {
        spawned->send_signal(SIGKILL);
        spawned->reap();
        throw;
    }
    return spawned;
}

std::shared_ptr<Spawned> Spawned::start_aside(const SpawnOptions& options, std::function<void()> ended) {
    const std::shared_ptr<Spawned> spawned(new Spawned);
    start_thread([spawned, options, ended = std::move(ended)] {
        try {
            if (spawned->take(spawned->begin(options))) spawned->reap();
        } catch (const Error& error) {
            spawned->fail(std::string("headscope: ") + error.what() + "\n");
        }
        if (ended) ended();
    }).detach();
    return spawned;
}

/// -1: it is not wanted any more. Throws Error.
pid_t Spawned::begin(const SpawnOptions& options) {
    const auto memory = [&] {
        const int file = ::memfd_create("headscope", MFD_CLOEXEC);
        if (file < 0) throw os_error(errno, options.program, "expected memory for what this program says");
        return file;
    };
    {
        const std::lock_guard lock(mutex_);
        if (early_signal_ != 0) return -1;
        if (options.keep_output) output_ = memory();
        if (options.error_file.empty()) errors_ = memory();
    }
    Plan plan;
    ::posix_spawn_file_actions_addopen(&plan.files, STDIN_FILENO, kNothing, O_RDONLY, 0);
    if (options.keep_output)
        ::posix_spawn_file_actions_adddup2(&plan.files, output_, STDOUT_FILENO);
    else
        ::posix_spawn_file_actions_addopen(&plan.files, STDOUT_FILENO, kNothing, O_WRONLY, 0);
    if (options.error_file.empty())
        ::posix_spawn_file_actions_adddup2(&plan.files, errors_, STDERR_FILENO);
    else
        ::posix_spawn_file_actions_addopen(&plan.files, STDERR_FILENO, options.error_file.c_str(),
                                           O_WRONLY | O_CREAT | O_TRUNC, 0644);
    // The child must not inherit ignored and blocked signals.
    sigset_t all, none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&plan.attributes, &all);
    ::posix_spawnattr_setsigmask(&plan.attributes, &none);
    ::posix_spawnattr_setflags(&plan.attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                                    (options.own_session ? POSIX_SPAWN_SETSID : 0)));
    std::vector<std::string> words = options.arguments;
    words.insert(words.begin(), options.program);
    pid_t process = -1;
    const int failure = ::posix_spawn(&process, options.program.c_str(), &plan.files, &plan.attributes,
                                      pointers_to(words).data(), ::environ);
    if (failure != 0) throw os_error(failure, options.program, "expected to start this program");
    // Before its threads are there: they have what the first one has.
    make_nice(process, std::max(options.nice, niceness_of_new_threads()));
    return process;
}

/// Applies requests made before the child existed. Returns false if it should only end and was not started.
bool Spawned::take(pid_t process) {
    const std::lock_guard lock(mutex_);
    process_ = process;
    if (process_ < 0)
        end(kSignalled + early_signal_);
    else if (early_signal_ != 0)
        ::kill(process_, early_signal_);
    changed_.notify_all();
    return !ended_;
}

void Spawned::fail(const std::string& failure) {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    end(kNotBegun);
}

/// Under the mutex.
void Spawned::end(int status) {
    status_ = status;
    ended_ = true;
    changed_.notify_all();
}

Spawned::~Spawned() {
    for (const int file : {output_, errors_})
        if (file >= 0) ::close(file);
}

void Spawned::reap() {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
    // Until then the number is its own: no signal meets another process.
    const std::lock_guard lock(mutex_);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    end(WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status));
}

bool Spawned::running() const {
    const std::lock_guard lock(mutex_);
    return !ended_;
}

void Spawned::send_signal(int number) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (process_ < 0)
        early_signal_ = number;
    else
        ::kill(process_, number);
}

bool Spawned::wait_until_begun(std::chrono::milliseconds most) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return process_ >= 0 || ended_; });
}

bool Spawned::wait(std::chrono::milliseconds most) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return ended_; });
}

int Spawned::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

std::string Spawned::output() const {
    const std::lock_guard lock(mutex_);
    return all_of(output_);
}

std::string Spawned::errors() const {
    const std::lock_guard lock(mutex_);
    return failure_.empty() ? all_of(errors_) : failure_;
}

}  // namespace headscope
