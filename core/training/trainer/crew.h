// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Processes of one run. Process 0 (the leader) owns the run folder, reads requests, evaluates, takes snapshots; it
// sends the others (the crew) the model's state at the start, and a command each step. The crew has no run folder. For
// core/training only.

#include <cstdint>

#include "core/training/trainer/processes.h"
#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

class Leader {
public:
    /// `processes` may be null: then there is no crew, and every call does nothing.
    explicit Leader(Processes* processes) : processes_(processes) {}
    /// Dismisses the crew, whatever happened.
    ~Leader();
    Leader(const Leader&) = delete;
    Leader& operator=(const Leader&) = delete;

    /// Throws Error for a job whose batch the processes cannot share.
    void check(const JobFile& job) const;
    /// Hands out job, model and state, and joins the learner to the others'.
    void invite(Session& session);
    /// The crew computes update `step` with this one, and makes it at `rate` if its numbers are finite.
    void command(std::int64_t step, std::int64_t optimizer_step, double rate);
    void dismiss() noexcept;
    int size() const { return processes_ == nullptr ? 1 : processes_->size(); }

private:
    Processes* processes_;
    bool invited_ = false, dismissed_ = false;
};

/// Runs a process of the crew from start to end; a stop is noticed by the leader. Throws Stopped if the leader could
/// not start (it reports why), Error for a failure here: then the caller must report it and abort(), since the others
/// wait.
void follow(Processes& processes, Progress& progress);

/// The sequences that a process reads: its share of each pass.
data::ReadPlan read_plan(const JobFile& job, std::int64_t position, int rank, int processes);

}  // namespace headscope::training
