// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/parallel.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/core/base/no_threads.h"

using namespace headscope::kernels;

namespace {

struct Settings {
    Settings(Team team, int count) {
        set_team(team);
        set_threads(count);
    }
    ~Settings() {
        set_threads(0);
        set_team(Team::openmp);
    }
};

const std::vector<Team> kTeams{Team::openmp, Team::pool};

}  // namespace

TEST_CASE("every index runs once, on a worker below the thread count", "[parallel]") {
    for (const Team team : kTeams) {
        for (const int count : {1, 2, 3, 7}) {
            const Settings settings(team, count);
            for (const std::int64_t indices : {0, 1, 2, 100}) {
                std::vector<std::atomic<int>> runs(static_cast<std::size_t>(indices));
                std::atomic<bool> in_range{true};
                parallel_for(indices, [&](std::int64_t index, int worker) {
                    ++runs[static_cast<std::size_t>(index)];
                    if (worker < 0 || worker >= count) in_range = false;
                });
                REQUIRE(in_range);
                for (const auto& n : runs) REQUIRE(n == 1);
            }
        }
    }
}

TEST_CASE("work is really shared among threads", "[parallel]") {
    for (const Team team : kTeams) {
        const Settings settings(team, 2);
        // Each of two indices waits for the other: one thread alone would never end.
        std::atomic<int> arrived{0};
        parallel_for(2, [&](std::int64_t, int) {
            ++arrived;
            while (arrived < 2) std::this_thread::yield();
        });
        REQUIRE(arrived == 2);
    }
}

TEST_CASE("the first exception comes out and the team works on", "[parallel]") {
    for (const Team team : kTeams) {
        const Settings settings(team, 3);
        REQUIRE_THROWS_AS(parallel_for(50,
                                       [](std::int64_t index, int) {
                                           if (index == 7) throw std::runtime_error("seven");
                                       }),
                          std::runtime_error);
        std::atomic<int> runs{0};
        parallel_for(50, [&](std::int64_t, int) { ++runs; });
        REQUIRE(runs == 50);
    }
}

TEST_CASE("a loop inside a loop runs on its own thread", "[parallel]") {
    for (const Team team : kTeams) {
        const Settings settings(team, 2);
        std::atomic<int> runs{0};
        std::atomic<bool> alone{true};
        parallel_for(4, [&](std::int64_t, int) {
            parallel_for(5, [&](std::int64_t, int worker) {
                ++runs;
                if (worker != 0) alone = false;
            });
        });
        REQUIRE(runs == 20);
        REQUIRE(alone);
    }
}

TEST_CASE("alone means that the calling thread does everything, also with many threads allowed", "[parallel]") {
    const Settings settings(Team::alone, 7);
    const std::thread::id caller = std::this_thread::get_id();
    int runs = 0;  // not atomic: ThreadSanitizer would see a second thread
    parallel_for(100, [&](std::int64_t, int worker) {
        if (worker == 0 && std::this_thread::get_id() == caller) ++runs;
    });
    CHECK(runs == 100);
}

TEST_CASE("several threads may each use a pool of their own", "[parallel]") {
    const Settings settings(Team::openmp, 2);
    std::atomic<int> runs{0};
    std::vector<std::thread> callers;
    for (int n = 0; n < 3; ++n) {
        callers.emplace_back([&] {
            set_team(Team::pool);
            parallel_for(100, [&](std::int64_t, int) { ++runs; });
        });
    }
    for (std::thread& caller : callers) caller.join();
    REQUIRE(runs == 300);
}

TEST_CASE("a pool that gets no threads works alone", "[parallel]") {
    bool held = false;
    const auto both_loops = [] {
        const Settings settings(Team::pool, 4);
        int runs = 0;  // by one thread: not atomic
        for (int again = 0; again < 2; ++again) parallel_for(100, [&](std::int64_t, int) { ++runs; });
        return runs == 200;
    };
    // From a thread that has no pool yet: one whose threads the child lacks would be waited for.
    std::thread([&] { held = headscope::test::holds_without_threads(both_loops); }).join();
    CHECK(held);
}

TEST_CASE("as many threads are startable as are wanted, and one where the system gives none", "[parallel]") {
    for (const int wanted : {1, 2, 5}) CHECK(startable_threads(wanted) == wanted);
    CHECK(headscope::test::holds_without_threads([] { return startable_threads(4) == 1; }));
}
