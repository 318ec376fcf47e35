// SPDX-License-Identifier: GPL-3.0-or-later
// A child program: its input, its output, its end, and who receives these.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>

#include "core/base/error.h"
#include "core/base/process/spawned.h"
#include "tests/core/base/temporary_folder.h"

using headscope::Error;
using headscope::ErrorCode;
using headscope::Spawned;
using headscope::SpawnOptions;
using namespace std::chrono_literals;

namespace {

SpawnOptions shell(const std::string& script) {
    SpawnOptions options;
    options.program = "/bin/sh";
    options.arguments = {"-c", script, "sh"};
    options.keep_output = true;
    return options;
}

/// Its output, after a good end.
std::string said(const SpawnOptions& options) {
    const auto spawned = Spawned::start(options);
    REQUIRE(spawned->wait(20s));
    INFO(spawned->errors());
    CHECK(spawned->status() == 0);
    CHECK_FALSE(spawned->running());
    return spawned->output();
}

}  // namespace

TEST_CASE("A spawned program has its arguments as they are, nothing to read, and both outputs are kept", "[spawned]") {
    SpawnOptions options = shell("cat; printf '%s|' \"$@\"; printf wrong >&2; exit 7");
    for (const char* word : {"a b", "", "\xc3\xa9*"}) options.arguments.emplace_back(word);
    std::promise<void> told;
    const auto spawned = Spawned::start(options, [&] { told.set_value(); });
    CHECK(spawned->process() > 0);
    REQUIRE(told.get_future().wait_for(20s) == std::future_status::ready);
    CHECK(spawned->status() == 7);
    CHECK(spawned->output() == "a b||\xc3\xa9*|");
    CHECK(spawned->errors() == "wrong");
}

TEST_CASE("A spawned program's environment is ours", "[spawned]") {
    ::setenv("HEADSCOPE_TEST_ONE", "ours", 1);
    CHECK(said(shell("echo $HEADSCOPE_TEST_ONE")) == "ours\n");
}

TEST_CASE("A spawned program's priority, session and file of errors", "[spawned]") {
    const headscope::test::TemporaryFolder folder;
    const int wanted = ::getpriority(PRIO_PROCESS, 0) + 3;
    // It begins before it is nice.
    SpawnOptions options = shell("for n in $(seq 100); do [ $(nice) = " + std::to_string(wanted) +
                                 " ] && break; sleep 0.1; done; nice; ps -o sid= -p $$ 2>/dev/null || echo $$; "
                                 "echo $$; echo error >&2");
    options.nice = wanted;
    options.own_session = true;
    options.error_file = folder / "log";
    std::ofstream(options.error_file) << "of an older one, which is longer";
    const auto spawned = Spawned::start(options);
    REQUIRE(spawned->wait(20s));
    int nice = 0;
    long session = 0, process = 0;
    std::istringstream(spawned->output()) >> nice >> session >> process;
    CHECK(nice == options.nice);
    CHECK(session == process);
    CHECK(process == spawned->process());
    std::ifstream log(options.error_file);
    CHECK(std::string(std::istreambuf_iterator<char>(log), {}) == "error\n");
    CHECK(spawned->errors().empty());
}

TEST_CASE("A spawned program can be ended, and a later signal reaches no other process", "[spawned]") {
    const auto spawned = Spawned::start(shell("trap '' TERM; echo on; exec sleep 100"));
    while (spawned->output() != "on\n") CHECK_FALSE(spawned->wait(1ms));
    spawned->send_signal(SIGTERM);
    CHECK_FALSE(spawned->wait(50ms));
    CHECK(spawned->running());
    spawned->send_signal(SIGKILL);
    REQUIRE(spawned->wait(20s));
    CHECK(spawned->status() == 128 + SIGKILL);
    spawned->send_signal(SIGKILL);
}

TEST_CASE("A signal that this process ignores reaches a spawned one", "[spawned]") {
    const auto before = std::signal(SIGUSR1, SIG_IGN);
    const auto spawned = Spawned::start(shell("echo on; exec sleep 100"));
    std::signal(SIGUSR1, before);
    while (spawned->output() != "on\n") CHECK_FALSE(spawned->wait(1ms));
    spawned->send_signal(SIGUSR1);
    REQUIRE(spawned->wait(20s));
    CHECK(spawned->status() == 128 + SIGUSR1);
}

TEST_CASE("A missing program and an unwritable file are reported at once", "[spawned]") {
    const headscope::test::TemporaryFolder folder;
    SpawnOptions options;
    options.program = (folder / "nothing").string();
    bool told = false;
    try {
        Spawned::start(options, [&] { told = true; });
        FAIL("expected an Error");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::io);
        CHECK(error.where() == options.program);
    }
    CHECK_FALSE(told);
    SpawnOptions wrong = shell("true");
    wrong.error_file = folder / "no folder" / "log";
    CHECK_THROWS_AS(Spawned::start(wrong), Error);
}

TEST_CASE("A program started aside is reported like any other", "[spawned]") {
    std::promise<void> told;
    const auto spawned = Spawned::start_aside(shell("printf wrong >&2; exit 7"), [&] { told.set_value(); });
    REQUIRE(told.get_future().wait_for(20s) == std::future_status::ready);
    CHECK(spawned->status() == 7);
    CHECK(spawned->errors() == "wrong");
    CHECK_FALSE(spawned->running());

    const headscope::test::TemporaryFolder folder;
    SpawnOptions options;
    options.program = (folder / "nothing").string();
    std::promise<void> told_of_none;
    const auto none = Spawned::start_aside(options, [&] { told_of_none.set_value(); });
    REQUIRE(told_of_none.get_future().wait_for(20s) == std::future_status::ready);
    CHECK(none->status() == 127);
    CHECK(none->errors().find("headscope: [" + options.program + "]") == 0);
}

TEST_CASE("A program that is begun aside and ended at once does not go on", "[spawned]") {
    for (int round = 0; round < 50; ++round) {
        const auto spawned = Spawned::start_aside(shell("exec sleep 100"));
        spawned->send_signal(SIGKILL);
        REQUIRE(spawned->wait(20s));
        CHECK(spawned->status() == 128 + SIGKILL);
    }
}
