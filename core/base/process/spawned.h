// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace headscope {

struct SpawnOptions {
    std::string program;                 ///< a path
    std::vector<std::string> arguments;  ///< without the program's name
    bool keep_output = false;            ///< kept for output(); else discarded
    std::filesystem::path error_file;    ///< receives its error text, replaced; empty: kept for errors()
    bool own_session = false;            ///< Ctrl-C in this process's terminal does not reach it
    int nice = 0;  ///< as nice(1) counts; less than that of this process, or of its new threads: that one
};

/// A child program without input. Started by posix_spawn: fork() copies the page tables, 50 ms for a window of 900 MB,
/// during which every page fault waits. Survives this process. Threads: any.
class Spawned {
public:
    static constexpr int kNotBegun = 127;  ///< a status, as a shell says it
    /// `ended` is called once after the end, from a thread of its own. Throws Error (io) where it cannot be begun.
    static std::shared_ptr<Spawned> start(const SpawnOptions& options, std::function<void()> ended = {});
    /// Does not wait until the program is loaded, for who must not wait for a disk or a place in a processor's queue.
    /// Where it cannot be begun it ends with status kNotBegun, and errors() says why as a command of ours would. Throws
    /// Error io where the system gives no thread.
    static std::shared_ptr<Spawned> start_aside(const SpawnOptions& options, std::function<void()> ended = {});
    ~Spawned();
    Spawned(const Spawned&) = delete;
    Spawned& operator=(const Spawned&) = delete;

    /// Id of a child started by start().
    pid_t process() const { return process_; }
    bool running() const;
    /// Nothing, where it has ended; one that is not begun yet will not be.
    void send_signal(int number);
    /// Waits until start_aside() has begun it, or could not; false: not yet.
    bool wait_until_begun(std::chrono::milliseconds most) const;
    /// Waits for the end; false: it goes on.
    bool wait(std::chrono::milliseconds most) const;
    /// After its end: exit status, or 128 plus the number of the signal.
    int status() const;
    /// Its output so far, the first 64 MiB.
    std::string output() const;
    std::string errors() const;

private:
    Spawned() = default;
    pid_t begin(const SpawnOptions& options);
    bool take(pid_t process);
    void reap();
    void fail(const std::string& failure);
    void end(int status);

    pid_t process_ = -1;             ///< -1: not begun
    int early_signal_ = 0;           ///< sent before it was begun
    std::string failure_;            ///< why it was not
    int output_ = -1, errors_ = -1;  ///< memory that it writes into; -1: not kept
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool ended_ = false;
    int status_ = 0;
};

}  // namespace headscope
