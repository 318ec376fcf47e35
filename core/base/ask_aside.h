// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/base/threads.h"

namespace headscope {

/// Asks on a thread of the question's own: a disk, a network that may never answer. The thread is not waited for, so
/// `question` holds all it needs by value; what it throws comes with the answer. Throws Error io where the system gives
/// no thread.
template <typename Question>
auto ask_aside(Question question) {
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
