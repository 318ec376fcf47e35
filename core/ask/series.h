// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Checkpoints of one model in turn: every indicator and the loss of each, as a separate analysis has them. One model is
// in memory at a time. Threads: the compute thread. Errors: headscope::Error (mismatch for a model of another shape);
// Stopped, with whole models in place.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask {

struct SeriesOptions {
    std::vector<std::string> models;  ///< paths; the first is the model of run_series()
    /// Frees the model in memory, closes its files and reads this one.
    std::function<model::Model&(const std::string& path)> load;
    /// Those of the model in memory: load() replaces their values. Null: none.
    const std::vector<model::Intervention>* interventions = nullptr;
    /// File of one analysis at a time, removed afterwards. Throws usage if a file of this name exists.
    std::filesystem::path scratch;
    std::function<void()> saved;
};

/// The last number in a path's name, as training and hub revisions number steps: "step143000", "pythia-70m-step512";
/// -1: none.
std::int64_t step_in_name(const std::string& path);

/// The paths with each folder that is no checkpoint replaced by those in it: folders with a config.json and a step in
/// their names, by step ("run/snapshots"). A folder without such folders stays.
std::vector<std::string> series_checkpoints(const std::vector<std::string>& paths);

/// Fills /series of `record`, which describes the first model: name and step [M], loss [M, S] (the mean over a text's
/// tokens), and each indicator [M, S, ..].
void run_series(model::Model& first, const SeriesOptions& options, store::AskRecord& record, Progress& progress,
                const Cancellation& cancellation);

}  // namespace headscope::ask
