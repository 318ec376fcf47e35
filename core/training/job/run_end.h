// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// End of a run, and when a resumed one may end elsewhere. No torch here.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/training/job/job.h"

namespace headscope::training {

/// The updates that the job is about; 0 for one of minutes, which is planned when its pace is known.
std::int64_t planned_updates(const JobFile& job);

/// True if a job of minutes has rates that depend on its plans: a resume must then follow them.
bool follows_plans(const JobFile& job);

/// Refuses an end (steps, tokens, minutes) that a run which has done `done` updates cannot get on resume. It may be any
/// that is not passed yet while no rate so far depends on it: with a constant schedule always, with wsd until its rate
/// began to fall, with cosine and linear during warm-up; then the run is that of the new job to the bit. Minutes are
/// planned from the pace, so with them only a constant schedule's end may move. `planned` is the end so far.
/// Error mismatch, which says what to do instead.
void check_end(const JobFile& job, const JobFile& was, std::int64_t done, std::int64_t planned,
               const std::filesystem::path& run);

/// One sentence for each key of the job that a run from update `begin` to update `end` never reaches, and for a warm-up
/// of more than half of the run. `held_out`: there is data to evaluate on.
std::vector<std::string> unreached_intervals(const JobFile& job, std::int64_t begin, std::int64_t end, bool held_out);

}  // namespace headscope::training
