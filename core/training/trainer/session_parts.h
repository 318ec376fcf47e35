// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of opening a session, for a new run, a fork (trainer_session.cpp) and a run that goes on (session_resume.cpp).
// Errors as train(). For core/training only.

#include <filesystem>
#include <memory>
#include <string>

#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

void write_job(const RunFolder& run, const JobFile& job);

/// words, data, source and held_out, by the job. `folder`: of the snapshot that the session goes on from; may be empty.
void open_data(Session& session, const std::filesystem::path& folder, Progress& progress,
               const Cancellation& cancellation);
/// Refuses data of another hash than the run started with; `where` names its source.
void check_data(const Session& session, const std::string& hash, const std::filesystem::path& where);

/// learner: the model that the job begins with, its guide read from the data; state: that of step 0.
void begin_model(Session& session, Progress& progress, const Cancellation& cancellation);
void fresh_state(Session& session);

/// learner: the model of a snapshot's folder.
void open_snapshot(Session& session, const std::filesystem::path& folder, Progress& progress,
                   const Cancellation& cancellation);
/// state, and the optimiser's tensors of the same folder; the model must be theirs.
void adopt(Session& session, const TrainingState& state, const std::filesystem::path& folder);

/// Opens everything of a session that resumes its run folder, with `processes` processes.
void open_resumed(Session& session, int processes, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::training
