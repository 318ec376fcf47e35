// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/in_threads.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace headscope {

void in_threads(std::int64_t count, const std::function<void(const std::atomic<bool>& failed)>& work) {
    std::atomic<bool> failed = false;
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            try {
                work(failed);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!first) first = std::current_exception();
                failed = true;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
}

}  // namespace headscope
