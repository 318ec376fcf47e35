// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "core/training/job/job.h"

namespace headscope::training {

/// Course of the rate after warm-up.
struct ScheduleKind {
    const char* name;  ///< schedule.kind of a job
    /// The rate at `progress` from 0 to 1; null: the peak.
    double (*rate)(double peak, double minimum, double progress);
    bool to_zero = false;       ///< the default of minimum_rate is 0
    bool falls_at_end = false;  ///< in the last decay_share alone
};
/// Error usage for an unknown name.
const ScheduleKind& schedule_kind(const ScheduleSettings& schedule);

/// The learning rate of update number `update` (from 1) of `updates` (> 0), with `peak` in the place of the job's
/// learning_rate. Warm-up rises in a line from warmup_start to the peak at update warmup_steps, to which other warm-ups
/// are resolved first (run_lengths() of run_end.h); the last update has
/// minimum_rate (constant: the peak). cosine_restarts falls five times from the peak (Loshchilov and Hutter, arXiv
/// 1608.03983; get_cosine_with_hard_restarts_schedule_with_warmup of transformers, whose step this is). A pure
/// function: nothing of it has to be saved.
double learning_rate(const ScheduleSettings& schedule, double peak, std::int64_t update, std::int64_t updates);

/// True if the rate of this update, or of an earlier one, would change with more `updates`.
bool depends_on_end(const ScheduleSettings& schedule, std::int64_t update, std::int64_t updates);

/// Updates that see `tokens` tokens, at least one: the last may see more of them.
std::int64_t updates_for_tokens(std::int64_t tokens, std::int64_t step_tokens);

/// Decides for a job of `minutes` how many updates it will have, from what was measured. A plan is made at given shares
/// of the time and when the machine proves faster, not all the time, and each is journalled: a run that is resumed
/// follows the plans that were made before, so its rates are the same. Until the first plan the rate is that of
/// warm-up, whatever the number.
class TimePlan {
public:
    explicit TimePlan(double seconds) : seconds_(seconds) {}

    /// The number of updates by what was done in `elapsed` seconds of training if it is time for a new plan, or the
    /// pace makes a tenth more of them than `planned` (0: not yet planned); else 0.
    std::int64_t plan(std::int64_t updates_done, double elapsed, std::int64_t planned);
    /// Plans that were due by then count as made.
    void resume(double elapsed);
    bool over(double elapsed) const { return elapsed >= seconds_; }

private:
    double next_share() const;

    double seconds_;
    int made_ = 0;
};

}  // namespace headscope::training
