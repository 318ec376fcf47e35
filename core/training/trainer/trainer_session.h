// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Everything that train() works with, once found and checked. For core/training only.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/data/batch/batch_source.h"
#include "core/data/data_set.h"
#include "core/run/journal.h"
#include "core/run/run_folder.h"
#include "core/training/job/run_end.h"
#include "core/training/trainer/learner.h"
#include "core/training/trainer/snapshots.h"
#include "core/training/trainer/trainer.h"
#include "core/training/trainer/training_state.h"

namespace headscope::training {

/// A request, or a plan of the trainer's own, that took effect after a step that will be computed again.
struct Replay {
    std::int64_t step = 0;
    std::string action, value, id;
    bool operator==(const Replay&) const = default;
};

/// Actions to repeat after step `from`, in order: every Control event of a journal, each once. A rate set after a
/// rewind replaces those set for later steps before it.
std::vector<Replay> replays_of(const std::vector<Event>& journal, std::int64_t from);

struct Session {
    JobFile job;
    RunFolder run;
    std::optional<data::HashedWords> words;  ///< of a model that hashes them
    std::shared_ptr<const data::DataSet> data;
    std::unique_ptr<const data::BatchSource> source, held_out;  ///< held_out may be null
    std::unique_ptr<Learner> learner;
    nlohmann::json generation;  ///< keys of generation_config.json of the checkpoint that the model comes from, or null
    std::unique_ptr<JournalWriter> journal;
    std::unique_ptr<SnapshotStore> snapshots;
    TrainingState state;
    RunLengths lengths;  ///< of the job with these data
    std::vector<Replay> replays;
    std::vector<std::string> problems;  ///< what was noticed on the way: damaged snapshots, a torn journal
    bool rewound = false;               ///< the journal has later steps
    bool resumed = false;
    bool untold = false;  ///< the journal lacks the snapshot to resume from: killed just before
    bool validated_first = false, probed_first = false;  ///< the journal has that of step 0
};

/// Opens or makes the run folder, finds data, model and state. Errors as train().
Session open_session(const TrainRequest& request, Progress& progress, const Cancellation& cancellation);

/// The Started event.
Started started_event(const Session& session, const std::string& program_version);

}  // namespace headscope::training
