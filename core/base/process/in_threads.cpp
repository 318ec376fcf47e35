// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/process/in_threads.h"

#include <exception>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/base/process/threads.h"

namespace headscope {

void in_threads(std::int64_t count, const std::function<void(const std::atomic<bool>& failed)>& work) {
    std::atomic<bool> failed = false;
    std::mutex mutex;
    std::exception_ptr first;
    const auto guarded = [&] {
        try {
            work(failed);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!first) first = std::current_exception();
            failed = true;
        }
    };
    std::vector<std::thread> threads;
    try {
        start_threads(threads, count, guarded);
    } catch (const Error&) {
        guarded();
    }
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
}

void in_threads(std::int64_t count, const std::vector<std::function<void()>>& work) {
    std::atomic<std::size_t> next{0};
    in_threads(count, [&](const std::atomic<bool>& failed) {
        for (std::size_t one = next++; one < work.size() && !failed; one = next++) work[one]();
    });
}

}  // namespace headscope
