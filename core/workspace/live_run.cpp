// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/live_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope::workspace {
namespace {

constexpr std::size_t kMostLines = 4000;
constexpr std::size_t kPaceOf = 50;  ///< steps whose mean pace says how long the rest takes

void note(LiveRun& record, double time, std::int64_t step, training::LogLevel level, std::string text) {
    record.log.push_back({time, step, level, std::move(text)});
    ++record.lines;
    if (record.log.size() > kMostLines) record.log.pop_front();
}

/// A rewind also drops the steps of samples that are no longer held.
void cut_older(LiveRun& run, std::int64_t last) {
    auto& steps = run.older_samples;
    while (!steps.empty() && steps.back() > last) steps.pop_back();
}

/// Writes a line of the log for each event that is worth one.
struct Teller {
    LiveRun& run;
    double time;

    void operator()(const training::Started& event) const {
        if (run.resumed > 0) cut_older(run, event.step);
        note(run, time, event.step, training::LogLevel::note,
             (event.step == 0 ? std::string("started") : "resumed at step " + std::to_string(event.step)) + " on " +
                 event.machine + ", " + std::to_string(event.threads) + " threads");
    }
    void operator()(const training::Control& event) const {
        if (event.action == "plan") return;  // written by a job with minutes, not by a user
        run.controls.push_back({time, event});
        note(run, time, event.step, training::LogLevel::note,
             event.action + (event.value.empty() ? "" : " " + event.value) +
                 (event.outcome.empty() ? "" : ": " + event.outcome));
    }
    void operator()(const training::Log& event) const { note(run, time, event.step, event.level, event.text); }
    void operator()(const training::StateChanged& event) const {
        const bool failed = event.state == training::RunState::failed;
        note(run, time, event.step, failed ? training::LogLevel::error : training::LogLevel::note,
             training::state_name(event.state) + (event.text.empty() ? "" : ": " + event.text));
    }
    void operator()(const training::SampleText& event) const {
        cut_older(run, event.step - 1);
        run.limit_samples();
    }
    void operator()(const training::Rewound& event) const {
        cut_older(run, event.step);
        note(run, time, event.step, training::LogLevel::warning,
             "back to step " + std::to_string(event.step) + (event.reason.empty() ? "" : ": " + event.reason));
    }
    template <class Other>
    void operator()(const Other& /*event*/) const {}
};

std::size_t bytes_of(const training::ProbeResult& probe) {
    std::size_t bytes = sizeof probe + probe.thumbnails.size() * sizeof(float);
    for (const auto& indicator : probe.indicators) bytes += sizeof indicator + indicator.values.size() * sizeof(double);
    return bytes;
}

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
    RunStory::add(event);
    std::visit(Teller{*this, event.time}, event.what);
    if (std::holds_alternative<training::ProbeResult>(event.what)) thin_probes();
}

void LiveRun::limit_samples() {
    if (samples.size() <= kMostSamples) return;
    const auto end = samples.end() - static_cast<std::ptrdiff_t>(kMostSamples);
    for (auto sample = samples.begin(); sample != end; ++sample) older_samples.push_back(sample->step);
    samples.erase(samples.begin(), end);
}

void LiveRun::thin_probes(std::size_t most) {
    const auto near = [this](const auto& probe, const auto& before) { return probe->step - before->step < probe_gap; };
    if (counted_ > 0 && counted_ + 1 == probes.size()) {
        probe_bytes_ += bytes_of(*probes.back());
    } else {
        probe_bytes_ = 0;
        for (const auto& probe : probes) probe_bytes_ += bytes_of(*probe);
    }
    // The one that was the last until now had that to thank for its place.
    if (const std::size_t count = probes.size(); count >= 3 && near(probes[count - 2], probes[count - 3])) {
        probe_bytes_ -= bytes_of(*probes[count - 2]);
        probes.erase(probes.end() - 2);
    }
    while (probe_bytes_ > most && probes.size() > 2) {
        const auto between = (probes.back()->step - probes.front()->step) / (std::ssize(probes) - 1);
        probe_gap = std::max(2 * probe_gap, 2 * std::max<std::int64_t>(1, between));
        std::vector<std::shared_ptr<const training::ProbeResult>> kept{probes.front()};
        for (std::size_t i = 1; i < probes.size(); ++i)
            if (i + 1 == probes.size() || !near(probes[i], kept.back())) kept.push_back(probes[i]);
        probes = std::move(kept);
        probe_bytes_ = 0;
        for (const auto& probe : probes) probe_bytes_ += bytes_of(*probe);
    }
    counted_ = probes.size();
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
    if (steps.size() > 0) return steps.step.back();
    return started ? started->step : 0;
}

double LiveRun::share_done() const {
    const auto all = static_cast<double>(planned_steps() - begin_step());
    return planned_steps() > 0 && all > 0 ? std::clamp(static_cast<double>(last_step() - begin_step()) / all, 0.0, 1.0)
                                          : 0;
}

std::optional<double> LiveRun::seconds_left() const {
    const std::size_t count = steps.size();
    if (planned_steps() == 0 || count < 2) return std::nullopt;
    const std::size_t first = count > kPaceOf ? count - kPaceOf : 0;
    const double taken = steps.seconds.back() - steps.seconds[first],
                 done = static_cast<double>(steps.step.back() - steps.step[first]);
    if (!(taken > 0) || !(done > 0)) return std::nullopt;
    return static_cast<double>(std::max<std::int64_t>(0, planned_steps() - steps.step.back())) * taken / done;
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
