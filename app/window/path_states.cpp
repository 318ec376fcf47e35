// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/path_states.h"

#include <QFileInfo>

#include "core/base/answer_within.h"
#include "core/base/error.h"

namespace headscope::app {

std::map<QString, PathStates::State> PathStates::ask(const QStringList& paths, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::map<QString, State> states;
    for (const QString& path : paths) {
        try {
            if (!asked_.contains(path)) asked_[path] = ask_aside([path] { return QFileInfo::exists(path); });
        } catch (const Error&) {  // no thread to ask on
            states[path] = QFileInfo::exists(path) ? State::there : State::missing;
        }
    }
    for (const QString& path : paths) {
        const auto place = asked_.find(path);
        if (place == asked_.end()) continue;
        if (place->second.wait_until(end) != std::future_status::ready) {
            states[path] = State::silent;
            continue;
        }
        states[path] = place->second.get() ? State::there : State::missing;
        asked_.erase(place);
    }
    return states;
}

}  // namespace headscope::app
