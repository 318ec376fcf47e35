// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/machine/processors.h"

namespace headscope::kernels {
namespace {

using Body = std::function<void(std::int64_t, int)>;

#if defined(__SANITIZE_THREAD__)
constexpr bool kOpenMpAllowed = false;  // libgomp is not instrumented: TSan would report its barriers as races
#else
constexpr bool kOpenMpAllowed = true;
#endif

std::atomic<int> requested_threads{0};
thread_local Team team_of_thread = kOpenMpAllowed ? Team::openmp : Team::pool;
thread_local bool inside_body = false;

/// One loop: hands out indices in rising order and keeps the first exception.
class Loop {
public:
    Loop(std::int64_t count, const Body& body) : count_(count), body_(body) {}

    void work(int worker) noexcept {
        inside_body = true;
        for (std::int64_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
            try {
                body_(i, worker);
            } catch (...) {
                const std::lock_guard lock(mutex_);
                if (!error_) error_ = std::current_exception();
                next_.store(count_);
            }
        }
        inside_body = false;
    }

    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    const std::int64_t count_;
    const Body& body_;
    std::atomic<std::int64_t> next_{0};
    std::mutex mutex_;
    std::exception_ptr error_;
};

/// Threads that wait for the loops of the one thread that owns the pool.
class Pool {
public:
    explicit Pool(int wanted) : wanted_(wanted) {
        for (int worker = 1; worker <= wanted; ++worker) {
            try {
                threads_.emplace_back([this, worker] { serve(worker); });
            } catch (const std::system_error&) {
                return;  // the system gives no more threads: those that there are do the work
            }
        }
    }
    ~Pool() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int wanted() const { return wanted_; }

    void run(Loop& loop) {
        {
            const std::lock_guard lock(mutex_);
            loop_ = &loop;
            busy_ = static_cast<int>(threads_.size());
            ++round_;
        }
        wake_.notify_all();
        loop.work(0);
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
        loop_ = nullptr;
    }

private:
    void serve(int worker) {
        std::uint64_t seen = 0;
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return stop_ || round_ != seen; });
            if (stop_) return;
            seen = round_;
            Loop* loop = loop_;
            lock.unlock();
            loop->work(worker);
            lock.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    const int wanted_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    Loop* loop_ = nullptr;
    std::uint64_t round_ = 0;
    int busy_ = 0;
    bool stop_ = false;
};

void run_on_pool(Loop& loop) {
    thread_local std::unique_ptr<Pool> pool;
    const int helpers = threads() - 1;
    if (!pool || pool->wanted() != helpers) {
        pool.reset();  // its threads end before new ones start
        pool = std::make_unique<Pool>(helpers);
    }
    pool->run(loop);
}

}  // namespace

void set_threads(int threads) {
    requested_threads.store(std::max(threads, 0));
}

int threads() {
    const int requested = requested_threads.load();
    if (requested > 0) return requested;
    return usable_processors();
}

int startable_threads(int wanted) {
    std::mutex mutex;
    std::vector<std::thread> others;
    {
        const std::lock_guard lock(mutex);  // until all live
        try {
            while (static_cast<int>(others.size()) + 1 < wanted)
                others.emplace_back([&mutex] { const std::lock_guard wait(mutex); });
        } catch (const std::system_error&) {
        }
    }
    for (std::thread& other : others) other.join();
    return static_cast<int>(others.size()) + 1;
}

void set_team(Team team) {
    team_of_thread = team == Team::openmp && !kOpenMpAllowed ? Team::pool : team;
}

void parallel_for(std::int64_t count, const Body& body) {
    if (count <= 0) return;
    // A body that calls an operator again works alone: its team is already busy.
    const bool nested = inside_body;
    const bool alone = nested || team_of_thread == Team::alone;
    const int workers = alone ? 1 : static_cast<int>(std::min<std::int64_t>(threads(), count));
    Loop loop(count, body);
    if (workers == 1) {
        loop.work(0);
        inside_body = nested;
    } else if (team_of_thread == Team::openmp) {
#pragma omp parallel for num_threads(workers) schedule(static, 1)
        for (int worker = 0; worker < workers; ++worker) loop.work(worker);
    } else {
        run_on_pool(loop);
    }
    loop.rethrow();
}

}  // namespace headscope::kernels
