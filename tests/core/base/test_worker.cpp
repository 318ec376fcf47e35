// SPDX-License-Identifier: GPL-3.0-or-later
// One thread that does tasks: order, cancelling, forgetting, ending.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/process/worker.h"

using headscope::Cancellation;
using headscope::Worker;

namespace {

/// Holds the worker at a task until it is let go.
struct Gate {
    std::promise<void> entered, open;
    std::shared_future<void> opened{open.get_future().share()};
    void hold(Worker& worker, const void* owner = nullptr) {
        worker.post(owner, [this](const Cancellation&) {
            entered.set_value();
            opened.wait();
        });
        entered.get_future().wait();
    }
};

std::vector<int> order_of(Worker::Order order) {
    Worker worker(order);
    std::vector<int> done;
    Gate gate;
    gate.hold(worker);
    for (int i = 0; i < 3; ++i) worker.post(nullptr, [&done, i](const Cancellation&) { done.push_back(i); });
    gate.open.set_value();
    worker.finish();
    return done;
}

}  // namespace

TEST_CASE("Tasks are done oldest or newest first", "[worker]") {
    CHECK(order_of(Worker::Order::oldest_first) == std::vector<int>{0, 1, 2});
    CHECK(order_of(Worker::Order::newest_first) == std::vector<int>{2, 1, 0});
}

TEST_CASE("Cancelling drops the owner's waiting tasks, stops the one at work, and leaves the others", "[worker]") {
    Worker worker;
    const int mine = 0, other = 0;
    std::atomic<int> done{0};
    std::atomic<bool> stopped{false};
    std::promise<void> entered;
    worker.post(&mine, [&](const Cancellation& cancellation) {
        entered.set_value();
        while (!cancellation.requested()) std::this_thread::yield();
        stopped = true;
    });
    entered.get_future().wait();
    worker.post(&mine, [&](const Cancellation&) { done += 100; });
    worker.post(&mine, [&](const Cancellation&) { done += 100; });
    worker.post(&other, [&](const Cancellation&) { done += 1; });
    CHECK(worker.cancel(&mine) == 2);
    worker.finish();
    CHECK(stopped);
    CHECK(done == 1);
    CHECK(worker.idle());
}

TEST_CASE("What a cancelled task holds is let go of on the worker's thread", "[worker]") {
    Worker worker;
    const int mine = 0;
    std::promise<std::thread::id> gone;
    Gate gate;
    gate.hold(worker);
    struct Held {
        std::promise<std::thread::id>& gone;
        ~Held() { gone.set_value(std::this_thread::get_id()); }
    };
    worker.post(&mine, [held = std::make_shared<Held>(gone)](const Cancellation&) {});
    CHECK(worker.cancel(&mine) == 1);
    std::promise<std::thread::id> works;
    worker.post(nullptr, [&](const Cancellation&) { works.set_value(std::this_thread::get_id()); });
    gate.open.set_value();
    CHECK(gone.get_future().get() == works.get_future().get());
}

TEST_CASE("What a worker lets go of is freed on its thread", "[worker]") {
    struct Held {
        std::thread::id* freed_on;
        ~Held() { *freed_on = std::this_thread::get_id(); }
    };
    std::thread::id freed_on, workers;
    Worker worker;
    worker.post(nullptr, [&](const Cancellation&) { workers = std::this_thread::get_id(); });
    auto held = std::make_shared<Held>(&freed_on);
    const std::weak_ptr<Held> seen = held;
    worker.let_go(std::move(held));
    worker.finish();
    CHECK(seen.expired());
    CHECK(freed_on == workers);
}

TEST_CASE("Forgetting returns when the owner's task is at work no more", "[worker]") {
    Worker worker;
    const int mine = 0;
    std::atomic<bool> ended{false};
    std::promise<void> entered;
    worker.post(&mine, [&](const Cancellation& cancellation) {
        entered.set_value();
        while (!cancellation.requested()) std::this_thread::yield();
        ended = true;
    });
    entered.get_future().wait();
    worker.forget(&mine);
    CHECK(ended);
}

TEST_CASE("What a task throws does not leave the thread", "[worker]") {
    Worker worker;
    bool after = false;
    worker.post(nullptr, [](const Cancellation&) { throw std::runtime_error("no"); });
    worker.post(nullptr, [&](const Cancellation&) { after = true; });
    worker.finish();
    CHECK(after);
}

TEST_CASE("A worker that ends stops its task and drops the rest", "[worker]") {
    std::atomic<int> later{0};
    std::promise<void> entered;
    {
        Worker worker;
        worker.post(nullptr, [&](const Cancellation& cancellation) {
            entered.set_value();
            while (!cancellation.requested()) std::this_thread::yield();
        });
        entered.get_future().wait();
        worker.post(nullptr, [&](const Cancellation&) { ++later; });
    }
    CHECK(later == 0);
}
