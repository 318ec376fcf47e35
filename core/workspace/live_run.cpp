// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/live_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace headscope::workspace {
namespace {

constexpr std::size_t kMostLines = 4000;
constexpr std::size_t kPaceOf = 50;  ///< steps whose mean pace says how long the rest takes

template <class... Columns>
void cut(std::size_t size, Columns&... columns) {
    (columns.resize(std::min(size, columns.size())), ...);
}

std::size_t count_until(const std::vector<double>& steps, std::int64_t step) {
    // Rewinds keep the column ascending.
    return static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), static_cast<double>(step)) -
                                    steps.begin());
}

/// Keeps the steps up to one.
void cut_steps(LiveRun::Steps& s, std::int64_t last) {
    cut(count_until(s.step, last), s.step, s.tokens, s.loss, s.learning_rate, s.gradient_norm, s.tokens_per_second,
        s.seconds, s.memory);
}

void note(LiveRun& record, double time, std::int64_t step, training::LogLevel level, std::string text) {
    record.log.push_back({time, step, level, std::move(text)});
    ++record.lines;
    if (record.log.size() > kMostLines) record.log.pop_front();
}

struct Taker {
    LiveRun& record;
    double time;

    void operator()(const training::Started& event) const {
        note(record, time, event.step, training::LogLevel::note,
             (event.step == 0 ? std::string("started") : "resumed at step " + std::to_string(event.step)) + " on " +
                 event.machine + ", " + std::to_string(event.threads) + " threads");
        record.started = event;
        record.state = training::RunState::running;
        record.state_text.clear();
    }
    void operator()(const training::Step& event) const {
        auto& steps = record.steps;
        // One that comes twice takes the place of the earlier one and of what followed it.
        if (!steps.step.empty() && steps.step.back() >= static_cast<double>(event.step))
            cut_steps(steps, event.step - 1);
        steps.step.push_back(static_cast<double>(event.step));
        steps.tokens.push_back(static_cast<double>(event.tokens));
        steps.loss.push_back(event.loss);
        steps.learning_rate.push_back(event.learning_rate);
        steps.gradient_norm.push_back(event.gradient_norm);
        steps.tokens_per_second.push_back(event.tokens_per_second);
        steps.seconds.push_back(event.seconds);
        steps.memory.push_back(event.memory);
    }
    void operator()(const training::Validation& event) const {
        record.validations.step.push_back(static_cast<double>(event.step));
        record.validations.loss.push_back(event.loss);
    }
    void operator()(const training::ProbeResult& event) const {
        record.probes.push_back(std::make_shared<const training::ProbeResult>(event));
    }
    void operator()(const training::Snapshot& event) const {
        std::erase_if(record.snapshots, [&](const auto& old) { return old.name == event.name; });
        if (event.best)
            for (auto& old : record.snapshots) old.best = false;
        record.snapshots.push_back(event);
    }
    void operator()(const training::Control& event) const {
        if (event.action == "plan" && record.started) {  // of a job that has minutes: not a wish of anybody's
            std::from_chars(event.value.data(), event.value.data() + event.value.size(), record.started->steps);
            return;
        }
        record.controls.push_back({time, event});
        note(record, time, event.step, training::LogLevel::note,
             event.action + (event.value.empty() ? "" : " " + event.value) +
                 (event.outcome.empty() ? "" : ": " + event.outcome));
    }
    void operator()(const training::SampleText& event) const { record.samples.push_back(event); }
    void operator()(const training::Log& event) const { note(record, time, event.step, event.level, event.text); }
    void operator()(const training::StateChanged& event) const {
        record.state = event.state;
        record.state_text = event.text;
        const bool failed = event.state == training::RunState::failed;
        note(record, time, event.step, failed ? training::LogLevel::error : training::LogLevel::note,
             training::state_name(event.state) + (event.text.empty() ? "" : ": " + event.text));
    }
    void operator()(const training::Rewound& event) const {
        cut_steps(record.steps, event.step);
        auto& v = record.validations;
        cut(count_until(v.step, event.step), v.step, v.loss);
        std::erase_if(record.probes, [&](const auto& probe) { return probe->step > event.step; });
        std::erase_if(record.snapshots, [&](const auto& snapshot) { return snapshot.step > event.step; });
        std::erase_if(record.samples, [&](const auto& sample) { return sample.step > event.step; });
        note(record, time, event.step, training::LogLevel::warning,
             "back to step " + std::to_string(event.step) + (event.reason.empty() ? "" : ": " + event.reason));
    }
};

}  // namespace

const char* status_name(RunStatus status) {
    switch (status) {
        case RunStatus::empty:
            return "starting";
        case RunStatus::running:
            return "running";
        case RunStatus::paused:
            return "paused";
        case RunStatus::stopped:
            return "stopped";
        case RunStatus::finished:
            return "finished";
        case RunStatus::failed:
            return "failed";
        case RunStatus::interrupted:
            return "interrupted";
    }
    return "";
}

void LiveRun::add(const training::Event& event) {
    if (events == 0) first_time = event.time;
    last_time = event.time;
    ++events;
    std::visit(Taker{*this, event.time}, event.what);
}

RunStatus LiveRun::status() const {
    if (!state) return RunStatus::empty;
    switch (*state) {
        case training::RunState::running:
            return written ? RunStatus::running : RunStatus::interrupted;
        case training::RunState::paused:
            return written ? RunStatus::paused : RunStatus::interrupted;
        case training::RunState::stopped:
            return RunStatus::stopped;
        case training::RunState::finished:
            return RunStatus::finished;
        case training::RunState::failed:
            return RunStatus::failed;
    }
    return RunStatus::empty;
}

std::int64_t LiveRun::last_step() const {
    if (steps.size() > 0) return static_cast<std::int64_t>(steps.step.back());
    return started ? started->step : 0;
}

std::optional<double> LiveRun::seconds_left() const {
    const std::size_t count = steps.size();
    if (planned_steps() == 0 || count < 2) return std::nullopt;
    const std::size_t first = count > kPaceOf ? count - kPaceOf : 0;
    const double taken = steps.seconds.back() - steps.seconds[first], done = steps.step.back() - steps.step[first];
    if (!(taken > 0) || !(done > 0)) return std::nullopt;
    return std::max(0.0, static_cast<double>(planned_steps()) - steps.step.back()) * taken / done;
}

double LiveRun::best_validation() const {
    double best = std::numeric_limits<double>::quiet_NaN();
    for (const double loss : validations.loss)
        if (!(loss >= best)) best = std::isnan(loss) ? best : loss;
    return best;
}

const training::Snapshot* LiveRun::best_snapshot() const {
    for (const auto& snapshot : snapshots)
        if (snapshot.best) return &snapshot;
    return snapshots.empty() ? nullptr : &snapshots.back();
}

const training::Snapshot* LiveRun::snapshot_at(std::int64_t step) const {
    for (const auto& snapshot : snapshots)
        if (snapshot.step == step) return &snapshot;
    return nullptr;
}

const training::ProbeResult::Indicator* find_indicator(const training::ProbeResult& probe, const std::string& name) {
    for (const auto& indicator : probe.indicators)
        if (indicator.name == name) return &indicator;
    return nullptr;
}

}  // namespace headscope::workspace
