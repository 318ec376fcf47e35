// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/base/process/cancellation_scope.h"
#include "core/base/process/threads.h"
#include "core/data/batch/batch_source.h"

namespace headscope::data {

struct Prefetcher::State {
    State(const BatchSource& from, ReadPlan how, int workers, int most)
        : source(from), plan(how), ahead(std::max(most, 1)) {
        start_threads(threads, std::max(workers, 1), [this] { work(); });
    }
    ~State() {
        {
            const std::lock_guard lock(mutex);
            ending = true;
        }
        changed.notify_all();
        for (std::thread& thread : threads) thread.join();
    }

    struct Result {
        DataBatch batch;
        std::exception_ptr fault;
    };

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return ending || begun < taken + ahead; });
            if (ending) return;
            const std::int64_t number = begun++;
            lock.unlock();
            Result result;
            try {
                result.batch = source.read(plan.first + number * plan.stride, plan.count);
            } catch (...) {
                result.fault = std::current_exception();
            }
            lock.lock();
            done[number] = std::move(result);
            changed.notify_all();
        }
    }

    const BatchSource& source;
    ReadPlan plan;
    std::int64_t ahead;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::int64_t, Result> done;
    std::int64_t begun = 0;
    std::int64_t taken = 0;
    bool ending = false;
    std::vector<std::thread> threads;
};

Prefetcher::Prefetcher(const BatchSource& source, ReadPlan plan, int workers, int ahead)
    : state_(std::make_unique<State>(source, plan, workers, ahead)) {}

Prefetcher::~Prefetcher() = default;

DataBatch Prefetcher::next(const Cancellation* cancellation) {
    constexpr auto look = std::chrono::milliseconds(100);
    std::unique_lock lock(state_->mutex);
    const auto ready = [&] { return state_->done.count(state_->taken) > 0; };
    while (!state_->changed.wait_for(lock, look, ready)) {
        if (cancellation != nullptr) cancellation->check();
        check_cancellation();
    }
    State::Result& result = state_->done.at(state_->taken);
    if (result.fault) std::rethrow_exception(result.fault);  // it stays there: asking again says the same
    DataBatch batch = std::move(result.batch);
    state_->done.erase(state_->taken++);
    state_->changed.notify_all();
    return batch;
}

}  // namespace headscope::data
