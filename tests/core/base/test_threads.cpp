// SPDX-License-Identifier: GPL-3.0-or-later
// Threads and lists of work, also where the system refuses threads.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/in_threads.h"
#include "core/base/process/spawned.h"
#include "core/base/process/threads.h"
#include "core/base/process/worker.h"
#include "tests/core/base/no_threads.h"

using namespace headscope;
using test::holds_without_threads;

namespace {

bool is_refused(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.code() == ErrorCode::io && error.expected().starts_with("expected to start a thread") &&
               error.found().starts_with("found: ");
    }
    return false;
}

}  // namespace

TEST_CASE("A thread that the system refuses is an error", "[threads]") {
    CHECK(holds_without_threads([] { return is_refused([] { start_thread([] {}); }); }));
    CHECK(holds_without_threads([] { return is_refused([] { const Worker worker; }); }));
    CHECK(holds_without_threads([] {
        std::vector<std::thread> threads;
        return is_refused([&] { start_threads(threads, 3, [] {}); }) && threads.empty();
    }));
}

TEST_CASE("Work for several threads is done by the calling one where there are no others", "[threads]") {
    const auto all_done = [] {
        std::atomic<int> next = 0;
        int done = 0;  // by one thread: not atomic
        in_threads(4, [&](const std::atomic<bool>&) {
            while (next++ < 10) ++done;
        });
        return done == 10;
    };
    CHECK(holds_without_threads(all_done));
}

TEST_CASE("Each piece of a list of work is done once, and none after an exception", "[threads]") {
    for (const std::int64_t threads : {1, 3}) {
        std::vector<std::atomic<int>> done(20);
        std::vector<std::function<void()>> work;
        for (std::atomic<int>& one : done) work.emplace_back([&one] { ++one; });
        in_threads(threads, work);
        CHECK(std::all_of(done.begin(), done.end(), [](const auto& one) { return one == 1; }));
    }
    int done = 0;
    const std::vector<std::function<void()>> failing{
        [&] { ++done; }, [] { throw Error(ErrorCode::internal, "x", "y", "z"); }, [&] { ++done; }};
    CHECK_THROWS_AS(in_threads(1, failing), Error);
    CHECK(done == 1);
    in_threads(2, std::vector<std::function<void()>>());
}

TEST_CASE("As many threads as were asked for do the work where the system has them", "[threads]") {
    std::vector<std::thread> threads;
    std::atomic<int> calls = 0;
    start_threads(threads, 3, [&] { ++calls; });
    for (std::thread& thread : threads) thread.join();
    CHECK(calls == 3);
    start_threads(threads, 0, [] {});
    CHECK(threads.size() == 3);
}

TEST_CASE("A process that leads a session is as nice a group", "[threads]") {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", "exec sleep 20"};
    options.own_session = true;
    options.nice = std::min(::getpriority(PRIO_PROCESS, 0) + 7, 19);
    const auto group_of = [](pid_t process) {
        std::ifstream file("/proc/" + std::to_string(process) + "/autogroup");
        std::string words;
        std::getline(file, words);
        return words;
    };
    const std::string own = group_of(::getpid());
    if (own.empty()) {
        WARN("this system has no groups of processes by session: that is not tested");
        return;
    }
    const auto leader = Spawned::start(options);
    options.own_session = false;
    const auto other = Spawned::start(options);
    CHECK(group_of(leader->process()).ends_with(" nice " + std::to_string(options.nice)));
    CHECK(group_of(::getpid()) == own);
    // In a process of the same niceness, as of a nice window, the group is not nice yet.
    const int more = std::min(options.nice + 2, 19);
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(leader->process()), more);
    make_nice(leader->process(), more);
    CHECK(group_of(leader->process()).ends_with(" nice " + std::to_string(more)));
    make_nice(leader->process(), options.nice);
    CHECK(group_of(leader->process()).ends_with(" nice " + std::to_string(more)));
    leader->send_signal(SIGKILL);
    other->send_signal(SIGKILL);
}

TEST_CASE("New threads give way to the one that calls, and so do those that they start", "[threads]") {
    const int own = ::getpriority(PRIO_PROCESS, 0);
    const auto niceness = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid))); };
    int of_one = -100, of_its_own = -100, afterwards = -100;
    set_new_threads_nice(3);
    start_thread([&] {
        of_one = niceness();
        std::thread([&] { of_its_own = niceness(); }).join();
    }).join();
    int of_another = -100;
    start_thread([&] { of_another = niceness(); }, false).join();
    SpawnOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", "exec sleep 20"};
    const auto child = Spawned::start(options);
    options.nice = std::min(own + 6, 19);
    const auto nicer = Spawned::start(options);
    const auto niceness_of = [](const Spawned& one) {
        return ::getpriority(PRIO_PROCESS, static_cast<id_t>(one.process()));
    };
    const int of_child = niceness_of(*child), of_nicer = niceness_of(*nicer);
    child->send_signal(SIGKILL);
    nicer->send_signal(SIGKILL);
    set_new_threads_nice(0);
    start_thread([&] { afterwards = niceness(); }).join();
    CHECK(of_one == std::min(own + 3, 19));
    CHECK(of_its_own == of_one);
    CHECK(of_another == own);
    CHECK(of_child == std::min(own + 3, 19));
    CHECK(of_nicer == std::min(own + 6, 19));
    CHECK(afterwards == own);
    CHECK(::getpriority(PRIO_PROCESS, 0) == own);
}
