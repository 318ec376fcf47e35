// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>
#include <chrono>
#include <future>
#include <map>

namespace headscope::app {

/// Queries whether paths exist. A disk that does not answer delays no other path. One thread at a time.
class PathStates {
public:
    enum class State { there, missing, silent };  ///< silent: no answer yet

    /// The state of each, by path. Waits at most `patience`, and not for those that did not answer the last time: they
    /// stay asked.
    std::map<QString, State> ask(const QStringList& paths, std::chrono::milliseconds patience);

private:
    std::map<QString, std::shared_future<bool>> asked_;
};

}  // namespace headscope::app
