// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

double seconds_since(std::chrono::steady_clock::time_point start);

/// Observes a model while it learns and changes nothing: held-out loss, indicators, a text of its own. Each is an
/// event. Threads: the compute thread.
class Observer {
public:
    Observer(Session& session, std::function<void(What)> emit, const Cancellation& cancellation)
        : s_(session), emit_(std::move(emit)), never_(cancellation) {}

    /// Loss on the held-out batches, always the same ones; once a step. What was found, for people.
    std::string validate();
    void probe();
    void sample();

private:
    void warn(const std::string& text);

    Session& s_;
    std::function<void(What)> emit_;
    const Cancellation& never_;
};

}  // namespace headscope::training
