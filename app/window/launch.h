// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <QString>
#include <QStringList>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/progress.h"
#include "core/base/spawned.h"
#include "core/training/job.h"
#include "widgets/training/job_draft.h"

namespace headscope::app {

/// A `headscope train` that is to begin, and then that has begun.
struct Launch {
    training::JobFile job;         ///< not with resume
    std::filesystem::path folder;  ///< the user's: runs, jobs and logs go below it
    bool resume = false;
    std::filesystem::path from;  ///< fork: a snapshot's folder
    bool fresh_optimizer = false;

    std::filesystem::path run;   ///< resume: given; else found by begin_training()
    std::filesystem::path log;   ///< what the process says
    std::uintmax_t journal = 0;  ///< resume: bytes of the journal before
    pid_t process = 0;
};

/// A process of ours that computes beside the window and others: at a low priority, and its threads that wait sleep
/// soon. With OpenMP's own long waits a job of two threads took twelve times as long on two processors that others used
/// as well.
SpawnOptions patient(const std::string& program, const QStringList& arguments);

/// Starts the process, in a session of its own and at a low priority: it outlives the window. Writes files. Throws
/// Error.
void begin_training(Launch& launch, const std::string& program);

struct LaunchState {
    enum class What { waiting, begun, ended };
    What what = What::waiting;
    QString words;  ///< ended: why, as the process said it
};
/// begun: its journal can be followed. Reads files.
LaunchState look_at(const Launch& launch);

/// Trains the job aside for about a second, with nothing but steps: tokens a second. Waits; `given_up` ends it. Throws
/// Error with what the process said, Stopped.
double measure_speed(const training::JobFile& job, const std::string& program, const std::filesystem::path& folder,
                     const std::atomic<bool>& given_up, const Cancellation& cancellation);

/// "[job.toml: line 3: training.steps] expected …" of a process, as what a form shows.
widgets::JobProblem problem_of_words(const QString& words);

}  // namespace headscope::app
