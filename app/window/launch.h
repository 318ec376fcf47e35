// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <sys/types.h>

#include <QString>
#include <QStringList>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/process/spawned.h"
#include "core/base/progress.h"
#include "core/training/job/job.h"
#include "widgets/desk/job_draft.h"

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
    /// The process. A number alone may be another's by the time that it is asked for; null: another window started it.
    std::shared_ptr<Spawned> spawned;
    pid_t process = 0;  ///< where `spawned` is null: found by find_launch()
};

/// A process of ours that computes beside the window and others, at a low priority. That its threads which wait sleep
/// soon it sees to itself (app/openmp_spin.h).
SpawnOptions patient(const std::string& program, const QStringList& arguments);
/// The progress of a command as the last line of it that it printed, "40 %  copa"; empty: none yet.
QString told_progress(const std::string& errors);

/// Starts the process, in a session of its own and at a low priority: it outlives the window. Writes files. Throws
/// Error.
void begin_training(Launch& launch, const std::string& program);

/// The process that is to train in this folder and has not made it yet, for its data may have to be made first, where
/// a window that is gone started it; null: there is none. `folder` is the user's. Reads /proc.
std::shared_ptr<Launch> find_launch(const std::filesystem::path& run, const std::filesystem::path& folder);

/// Asks the process to end, with a snapshot if it has got so far. Reads /proc.
void stop_launch(const Launch& launch);

struct LaunchState {
    enum class What { waiting, begun, ended };
    What what = What::waiting;
    QString words;  ///< ended: why, as the process said it
};
/// begun: its journal can be followed. Reads files.
LaunchState look_at(const Launch& launch);

/// The job with nothing but steps, as measure_speed() trains it.
training::JobFile measured_job(training::JobFile job);

/// Trains the job aside for about a second, with nothing but steps: tokens a second. Waits; `given_up` ends it. Throws
/// Error with what the process said, Stopped.
double measure_speed(const training::JobFile& job, const std::string& program, const std::filesystem::path& folder,
                     const std::atomic<bool>& given_up, const Cancellation& cancellation);

/// Removes from the user's folder what measurements (measure_speed(), measure_rate()) left whose window was killed. For
/// a window that has not measured anything yet. Never throws.
void remove_measurements(const std::filesystem::path& folder);

/// "[job.toml: line 3: training.steps] expected …" of a process, as what a form shows.
widgets::JobProblem problem_of_words(const QString& words);

}  // namespace headscope::app
