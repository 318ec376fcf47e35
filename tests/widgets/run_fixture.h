// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/run/events.h"
#include "core/workspace/live_run.h"
#include "widgets/desk/job_draft.h"
#include "widgets/desk/run_shelf.h"

namespace headscope::tests {

struct MadeRun {
    std::int64_t layers = 4, heads = 4, steps = 400, planned = 1000;
    std::int64_t probe_every = 20, thumbnails = 16;  ///< 0: none
    double level = 1;                                ///< of the loss at the end
    unsigned seed = 1;
};

/// A run that never was, with everything that a journal can hold: noisy falling losses, validations, probes, snapshots,
/// samples, a changed rate, lines of a log.
std::vector<training::Event> made_events(const MadeRun& made = {});
std::shared_ptr<const workspace::LiveRun> made_run(const MadeRun& made = {}, bool written = true);

/// Choices as the engine would list them: the seven mixers, three layouts, presets.
widgets::JobChoices made_choices();
/// Estimate of a job with `layers`; all but those given are standard.
widgets::JobEstimate made_estimate(std::vector<std::string> layers);

/// Turns the event loop until the shelf's worker is idle.
void settle(widgets::RunShelf& shelf, double seconds = 20);

}  // namespace headscope::tests
