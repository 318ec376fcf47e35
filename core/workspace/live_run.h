// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/run/events.h"
#include "core/run/run_story.h"

namespace headscope::workspace {

/// How a run is, as people see it: its journal's last state, and whether anybody is still writing that.
enum class RunStatus { empty, running, paused, stopped, finished, failed, interrupted };

/// "running", "interrupted", ...
const char* status_name(RunStatus status);

/// State of a run as of its journal so far: views draw it while it grows. Made event by event on one thread; a
/// copy is an immutable value for others, of 72 bytes a step (store::RunRecord is the finished run, for files and
/// figures).
struct LiveRun : training::RunStory {
    struct Line {
        double time = 0;  ///< seconds since 1970
        std::int64_t step = 0;
        training::LogLevel level = training::LogLevel::note;
        std::string text;
    };
    struct ControlDone {
        double time = 0;
        training::Control control;
    };

    std::vector<ControlDone> controls;     ///< requests; not the trainer's own plans
    std::deque<Line> log;                  ///< the last few thousand lines: log events, controls, states
    std::uint64_t lines = 0;               ///< of the log, with those that are gone from its begin
    bool written = false;                  ///< a process has the journal open
    double first_time = 0, last_time = 0;  ///< of events
    std::uint64_t events = 0;              ///< taken in

    /// A run of a night has more probes than memory should hold. Of those that are less than this many steps after the
    /// one before, only the last of all is kept; 0: all are. The files have them all.
    std::int64_t probe_gap = 0;
    static constexpr std::size_t kMostProbeBytes = std::size_t{64} << 20U;
    /// Steps of texts that the model wrote before `samples`, which has the last ones. The files have them all.
    std::vector<std::int64_t> older_samples;
    static constexpr std::size_t kMostSamples = 300;

    void add(const training::Event& event);
    /// Drops probes until they take `most` bytes at most.
    void thin_probes(std::size_t most = kMostProbeBytes);
    /// Drops the older samples.
    void limit_samples();

    RunStatus status() const;
    std::int64_t last_step() const;
    /// As planned last; 0: until a time is over.
    std::int64_t planned_steps() const { return started ? started->steps : 0; }
    /// The step that it began at: 0, or that of the snapshot that it was forked from.
    std::int64_t begin_step() const {
        return !steps.step.empty() ? steps.step.front() - 1 : started ? started->step : 0;
    }
    /// Share of its own steps that is done, 0 to 1; 0 if not planned.
    double share_done() const;
    /// Steps until its end at the pace of the last ones; empty: not known.
    std::optional<double> seconds_left() const;
    double best_validation() const;  ///< NaN: none
    /// The best, else the last snapshot; null: none.
    const training::Snapshot* best_snapshot() const;
    const training::Snapshot* snapshot_at(std::int64_t step) const;

private:
    std::size_t counted_ = 0, probe_bytes_ = 0;  ///< number of probes counted, and their bytes
};

/// The indicator of one probe, or null.
const training::ProbeResult::Indicator* find_indicator(const training::ProbeResult& probe, const std::string& name);

}  // namespace headscope::workspace
