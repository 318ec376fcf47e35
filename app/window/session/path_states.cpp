// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/session/path_states.h"

#include <QFileInfo>

#include "core/base/error.h"
#include "core/base/process/ask_async.h"

namespace headscope::app {

std::map<QString, PathStates::State> PathStates::ask(const QStringList& paths, std::chrono::milliseconds patience) {
    using std::chrono::steady_clock;
    const auto is_answered = [](const std::shared_future<bool>& answer, steady_clock::time_point end) {
        return answer.wait_until(end) == std::future_status::ready;
    };
    const auto now = steady_clock::now(), end = now + patience;
    // Late answers of an earlier query may be outdated.
    std::erase_if(asked_, [&](const auto& one) { return is_answered(one.second, now); });
    std::map<QString, State> states;
    std::map<QString, std::shared_future<bool>> anew;
    for (const QString& path : paths) {
        try {
            if (asked_.contains(path))
                states[path] = State::silent;
            else if (!anew.contains(path))
                anew[path] = ask_async([path] { return QFileInfo::exists(path); });
        } catch (const Error&) {  // no thread to ask on
            states[path] = QFileInfo::exists(path) ? State::there : State::missing;
        }
    }
    for (const auto& [path, answer] : anew) {
        if (is_answered(answer, end)) {
            states[path] = answer.get() ? State::there : State::missing;
        } else {
            states[path] = State::silent;
            asked_[path] = answer;
        }
    }
    return states;
}

}  // namespace headscope::app
