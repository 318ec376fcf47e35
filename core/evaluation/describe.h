// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/training/job/job.h"

namespace headscope::evaluation {

/// A checkpoint's entry in an evaluation file. `job`: what trained it; null: not known.
store::EvaluatedModel describe(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                               const std::set<int>& skipped, const training::JobFile* job,
                               const Cancellation& cancellation);

/// Name of a checkpoint in results: that of its run for a snapshot.
std::string evaluated_name(const checkpoint::Checkpoint& checkpoint);

/// Tokens of the longest text of training: the job's sequences; without a job, the model's `positions` (0: no limit).
std::int64_t training_length(const training::JobFile* job, std::int64_t positions);

/// The mixer other than standard, or "several"; standard if there is none.
std::string mixer_of(const std::vector<std::string>& layer_mixers);

/// The layers whose mixer is not standard: what a hybrid is evaluated without ("skip").
std::set<int> other_layers(const std::vector<std::string>& layer_mixers);

/// The job that made a checkpoint: job.toml beside its weights, or that of the run whose snapshot it is; empty when
/// there is none. Throws what reading it throws.
std::optional<training::JobFile> job_of(const std::filesystem::path& checkpoint);

/// A run folder's best snapshot, or its last one; any other path as it is.
std::filesystem::path checkpoint_in(const std::filesystem::path& path);

}  // namespace headscope::evaluation
