// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Runs the built program as a person or a script would: a process with arguments, an environment and files.

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace headscope::testing {

/// Sanitizers make everything slower; times that tests promise are stretched by it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr double kSlowness = 12.0;
#else
inline constexpr double kSlowness = 1.0;
#endif

struct Outcome {
    int status = -1;  ///< exit status, or 128 + signal as a shell says it
    std::string out, err;
    double seconds = 0;
    double processor_seconds = 0;  ///< of all its threads; what a busy machine does not change
    double megabytes = 0;          ///< peak of memory, of the process or of a child of it
    bool timed_out = false;        ///< did not end by itself and was killed

    /// Lines of standard error that are not progress ("headscope:  12 %  layer 3").
    std::vector<std::string> messages() const;
};

struct Settings {
    std::vector<std::string> environment = {};  ///< "NAME=value", beside what the test itself has
    std::filesystem::path standard_input = "/dev/null";
    std::filesystem::path standard_output = {};  ///< empty: captured in Outcome::out
    std::string shell_prefix = {};               ///< such as "ulimit -f 8;" before the program takes the process over
    double seconds = 60;                         ///< then it is killed
};

/// A running program; the destructor kills it unless the test waited. Not copyable.
class Process {
public:
    explicit Process(const std::vector<std::string>& arguments, Settings settings = {});
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    void signal(int number) const;
    bool running();
    /// Standard error so far.
    std::string messages_so_far() const;
    /// Waits for the end, at most for Settings::seconds from now.
    Outcome wait();

private:
    void reap(int wait_status, const struct rusage& usage);

    Settings settings_;
    std::filesystem::path out_, err_;
    std::chrono::steady_clock::time_point start_;
    pid_t process_ = -1;
    int status_ = -1;
    double processor_seconds_ = 0, megabytes_ = 0;
};

Outcome run_headscope(const std::vector<std::string>& arguments, Settings settings = {});

}  // namespace headscope::testing
