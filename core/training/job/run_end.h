// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// End of a run, and when a resumed one may end elsewhere. No torch here.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/training/job/job.h"

namespace headscope::training {

/// Updates of the job; 0 for one of minutes, which is planned when its pace is known, and for one of epochs without
/// `epoch`, the sequences of a pass over the training data (0: not known, or endless).
std::int64_t planned_updates(const JobFile& job, std::int64_t epoch = 0);

/// Numbers of updates that the job gives in tokens, shares or epochs.
struct RunLengths {
    std::int64_t updates = 0;  ///< as planned_updates()
    std::int64_t warmup = 0;
    std::int64_t evaluation_every = 0;  ///< 0: never, or not known

    std::string text() const;  ///< one line for the log
};
RunLengths run_lengths(const JobFile& job, std::int64_t epoch = 0);
/// True if one of them is given in another unit than updates.
bool gives_other_units(const JobFile& job);
/// Refuses keys in epochs with data that never end (`epoch` 0).
void check_epochs(const JobFile& job, std::int64_t epoch);

/// True if a job of minutes has rates that depend on its plans: a resume must then follow them.
bool follows_plans(const JobFile& job);

/// Refuses an end (steps, tokens, minutes) that a run which has done `done` updates cannot get on resume. It may be any
/// that is not passed yet while no rate so far depends on it: with a constant schedule always, with wsd until its rate
/// began to fall, with cosine and linear during warm-up; then the run is that of the new job to the bit. Minutes are
/// planned from the pace, so with them only a constant schedule's end may move. `planned` is the end so far.
/// A warm-up that is a share of the run depends on its end. `epoch` as above. Error mismatch, which says what to do
/// instead.
void check_end(const JobFile& job, const JobFile& was, std::int64_t done, std::int64_t planned, std::int64_t epoch,
               const std::filesystem::path& run);

/// One sentence for each key of the job that a run from update `begin` to update `end` never reaches, and for a warm-up
/// of more than half of the run. `held_out`: there is data to evaluate on.
std::vector<std::string> unreached_intervals(const JobFile& job, const RunLengths& lengths, std::int64_t begin,
                                             std::int64_t end, bool held_out);

}  // namespace headscope::training
