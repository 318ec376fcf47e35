// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What still counts of what a run's journal tells: the one place that decides what a resume from an earlier step takes
// back. run.h5 and the figures are made of it (run_history.h), and the window while the run goes on
// (core/workspace/live_run.h). No torch here.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/events.h"
#include "core/store/run_record.h"

namespace headscope::training {

/// Events go in one after the other. A rewind drops what came after its step; what is told of a step again replaces
/// what was told before of that step and of those after it. Steps rise in every list. Threads: one at a time.
struct RunStory {
    std::optional<Started> started;  ///< the last one; `steps` as planned last
    double began = 0;                ///< time of the first one
    std::int64_t resumed = 0;        ///< how often a process went on with it
    store::RunSteps steps;
    store::RunValidations validations;
    std::vector<std::shared_ptr<const ProbeResult>> probes;  ///< all of the stack of `started`
    std::vector<Snapshot> snapshots;                         ///< at most one is the best
    std::vector<SampleText> samples;
    std::optional<RunState> state;  ///< what the journal said last
    std::string state_text;

    void add(const Event& event);

private:
    struct Reader;
    void rewind(std::int64_t step);
};

}  // namespace headscope::training
