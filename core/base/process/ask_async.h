// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/base/process/threads.h"

namespace headscope {

/// Runs `question` on a thread of its own: for disks and networks that may never answer. The thread is detached, so
/// `question` owns all it needs; its exceptions come with the answer. Throws Error io if the system gives no thread.
template <typename Question>
auto ask_async(Question question) {
    using Answer = std::invoke_result_t<Question&>;
    auto promise = std::make_shared<std::promise<Answer>>();
    std::shared_future<Answer> answer = promise->get_future().share();
    start_thread([promise, question = std::move(question)]() mutable {
        try {
            promise->set_value(question());
        } catch (...) {
            promise->set_exception(std::current_exception());
        }
    }).detach();
    return answer;
}

}  // namespace headscope
