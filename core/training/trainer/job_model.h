// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a job's [model] to a model that can be trained. Threads: the compute thread.

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/progress.h"
#include "core/model/trainable.h"
#include "core/training/job/job.h"

namespace headscope::training {

/// The config.json of a job that starts from a preset: sizes, layers, options of mixers, the vocabulary of its data
/// (`vocabulary`: the least that it may have). Throws Error with the place of the key in the job that is wrong.
std::string model_config(const JobFile& job, std::int64_t vocabulary);

/// What is wrong with a job's model.from before its weights are read: it is no checkpoint, or the job says sizes too.
void check_from(const JobFile& job);
/// Refuses a job whose checkpoint brings no tokenizer where another had to be named.
void check_tokenizer(const JobFile& job);

/// Fresh weights from the job's seed, or those of model.from with the job's mixers.
std::unique_ptr<model::Trainable> make_model(const JobFile& job, std::int64_t vocabulary, Progress& progress,
                                             const Cancellation& cancellation);

at::ScalarType weight_type(const JobFile& job);

/// Bytes of weights, gradients and AdamW's running means, with float32 masters of bfloat16 weights.
double state_bytes(const JobFile& job, double parameters);
/// Throws Error limit, with the place of the key, for a job that needs more memory than the machine has, by what it
/// needs at the least: before any of it is taken.
void check_memory(const JobFile& job, const model::ModelConfig& config, double parameters);

/// Names everything that decides which number of the flat weights is what: SHA-256 of names, shapes and order.
std::string layout_hash(const model::Trainable& model);

}  // namespace headscope::training
