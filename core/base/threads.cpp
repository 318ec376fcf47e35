// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/os_error.h"

namespace headscope {

std::thread start_thread(std::function<void()> work) {
    try {
        return std::thread(std::move(work));
    } catch (const std::system_error& refusal) {
        throw Error(ErrorCode::io, "threads", "expected to start a thread (see ulimit -u)",
                    os_error_text(refusal.code().value()));
    }
}

void start_threads(std::vector<std::thread>& threads, std::int64_t count, const std::function<void()>& work) {
    const std::size_t before = threads.size();
    threads.reserve(before + static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    for (std::int64_t i = 0; i < count; ++i) {
        try {
            threads.push_back(start_thread(work));
        } catch (const Error&) {
            if (threads.size() == before) throw;
            return;
        }
    }
}

}  // namespace headscope
