// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Processes of one run. The coordinator, in process 0, owns the run folder, reads requests, evaluates, takes snapshots;
// it sends the workers the model's state at the start, and a command each step. Workers have no run folder. For
// core/training only.

#include <cstdint>

#include "core/training/trainer/processes.h"
#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

class Coordinator {
public:
    /// `processes` may be null: then there are no workers, and every call does nothing.
    explicit Coordinator(Processes* processes) : processes_(processes) {}
    /// Stops the workers.
    ~Coordinator();
    Coordinator(const Coordinator&) = delete;
    Coordinator& operator=(const Coordinator&) = delete;

    /// Throws Error for a job whose batch the processes cannot share.
    void check(const JobFile& job) const;
    /// Sends job, model and state, and joins the learner to the workers'.
    void start_workers(Session& session);
    /// The workers compute update `step` with this process, and apply it at `rate` if its numbers are finite.
    void command(std::int64_t step, std::int64_t optimizer_step, double rate);
    void stop_workers() noexcept;
    int size() const { return processes_ == nullptr ? 1 : processes_->size(); }

private:
    Processes* processes_;
    bool started_ = false, stopped_ = false;
};

/// Runs a worker from start to end; the coordinator handles a stop. Throws Stopped if the coordinator could not start
/// (it reports why), Error for a failure here: then the caller must report it and abort(), since the others wait.
void run_worker(Processes& processes, Progress& progress);

/// The sequences that a process reads: its share of each pass.
data::ReadPlan read_plan(const JobFile& job, std::int64_t position, int rank, int processes);

}  // namespace headscope::training
