// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
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

/// Empty: there is no answer yet after `patience`.
template <typename Question>
auto answer_within(std::chrono::milliseconds patience, Question question) {
    const auto answer = ask_aside(std::move(question));
    using Answer = std::decay_t<decltype(answer.get())>;
    if (answer.wait_for(patience) != std::future_status::ready) return std::optional<Answer>();
    return std::optional<Answer>(answer.get());
}

}  // namespace headscope
