// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/training/job/job.h"
#include "widgets/desk/job_draft.h"

namespace headscope::app {

/// The choices of a form by name: presets, mixers, layouts, corpora, generators.
widgets::JobChoices job_choices();

/// Memory and time of a job, from its sizes alone; `tokens_per_second` as measured here, 0: not yet. Reads a
/// checkpoint's header when the job starts from one, so not for the window's thread. What is wrong with model or data
/// is in its problem. Throws Stopped.
widgets::JobEstimate estimate_job(const training::JobFile& job, double tokens_per_second,
                                  const Cancellation& cancellation);

/// The config.json of a job that starts from a preset, before its data are read. Throws Error.
std::string config_of_job(const training::JobFile& job);

/// Names what the speed of a job depends on: two jobs with one key are equally fast.
std::string speed_key(const training::JobFile& job);

}  // namespace headscope::app
