// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Records of a run's journal that still count: the one rule for a resume from an earlier step. run.h5 and figures are
// built from it (run_history.h), and the window during the run (core/workspace/live_run.h). No torch here.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/run/events.h"
#include "core/store/run/run_record.h"

namespace headscope::training {

/// Fed event by event. A rewind drops everything after its step; a repeated step overwrites the earlier record of it
/// and of all later steps. Steps rise in every list. Threads: one at a time.
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
