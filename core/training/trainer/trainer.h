// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Runs a training job in a run folder, from its start, from its last whole snapshot, or from a snapshot of another run.
// Events go to the folder's journal, requests come from its control folder.
//
// To the bit: weights after step N are a function of job, data and the run's control events (journaled with their step,
// and repeated on resume), whatever was killed and resumed between, on one machine with one number of threads.

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/run/events.h"
#include "core/training/job/job.h"
#include "core/training/trainer/processes.h"

namespace headscope::training {

struct TrainRequest {
    enum class Start { fresh, resume, fork };

    JobFile job;                ///< with absolute paths
    std::filesystem::path run;  ///< fresh, fork: a new or an empty folder
    Start start = Start::fresh;
    std::filesystem::path from;  ///< fork: a snapshot's folder
    bool keep_optimizer = true;  ///< fork: steps, running means and place in the data continue; else they restart
    std::string program_version;
    Processes* processes = nullptr;  ///< what trains together; null: this one alone

    std::chrono::milliseconds run_file_every{30'000};  ///< interval of rebuilding run.h5 during training

    std::function<void(const Event&)> on_event;  ///< called with each journal event; may be empty
    /// For tests: sees, and may change, the gradients of update `step`; `attempt` 0, and 1 when it is repeated.
    std::function<void(std::int64_t step, int attempt, at::Tensor gradients)> on_gradients;
    /// For tests and reproductions: returns true to stop after a step, as a stop request does.
    std::function<bool(std::int64_t step)> stop_after;
};

struct TrainOutcome {
    RunState state = RunState::finished;  ///< finished or stopped; what failed throws
    bool cancelled = false;               ///< stopped because `cancellation` asked
    std::int64_t step = 0;
    double loss = 0;        ///< of the last step
    double validation = 0;  ///< the last; NaN without held-out text
};

/// Returns when the run is finished or was stopped: by a request, or by `cancellation`, which ends the current step and
/// takes a snapshot. Error: of the job, the data, the model; usage for a run folder that another process trains, that
/// is not empty (fresh, fork) or holds no run (resume); mismatch for a changed job or data; limit for a loss or
/// gradient that is not finite twice; io. A failed run can be resumed from its last snapshot. Stopped if nothing was
/// done yet. Call on the compute thread, with threads set (kernels::set_threads, at::set_num_threads); with several
/// processes on process 0, while the others run run_worker() (coordinator.h).
TrainOutcome train(const TrainRequest& request, Progress& progress, const Cancellation& cancellation);

/// The job that a run folder or a snapshot's folder was made by.
JobFile stored_job(const std::filesystem::path& folder);

}  // namespace headscope::training
