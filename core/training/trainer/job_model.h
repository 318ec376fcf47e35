// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From a job's [model] to a model that can be trained. Threads: the compute thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/data/data_set.h"
#include "core/model/trainable.h"
#include "core/training/job/job.h"

namespace headscope::training {

/// Facts about a job's data that its model needs.
struct OfData {
    OfData(std::int64_t least_vocabulary) : vocabulary(least_vocabulary) {}  // NOLINT(google-explicit-constructor)
    std::int64_t vocabulary;                                                 ///< the least that it may have
    std::int64_t ngrams = 0;                                                 ///< of LSH; 0: not known
    std::int64_t decoder_start = -1;  ///< that a decoder's texts begin with; -1: none
};

/// The config.json of a job that starts from a preset: sizes, layers, options of mixers, the head of its objective, the
/// vocabulary of its data. Throws Error with the place of the key in the job that is wrong.
std::string model_config(const JobFile& job, const OfData& data);

/// Input of a job whose model hashes words; nullopt with a vocabulary. `folder`: that of the snapshot to resume; empty:
/// of model.from, or fresh: then LSH's n-grams are counted in the job's text and the hyperplanes are those that a fresh
/// model draws.
std::optional<data::HashedWords> hashed_words(const JobFile& job, const std::filesystem::path& folder,
                                              const data::DataPlaces& places, Progress& progress,
                                              const Cancellation& cancellation);
/// The same of words whose n-grams (the text of ngrams.json; empty: none) and hyperplanes somebody else has:
/// `embedding` of the configuration, numbers of model.hash_normal.
data::HashedWords hashed_words(const tokenizer::HashSettings& settings, const std::string& ngrams,
                               const std::vector<float>& normal, std::shared_ptr<const tokenizer::Tokenizer> pieces);

/// Mixers of `config` whose layers training.attention_dropout leaves alone, since they have no attention weights; empty
/// without dropout. Throws Error(unsupported) at the key if no layer has any.
std::vector<std::string> mixers_without_weights(const JobFile& job, const model::ModelConfig& config);

/// Refuses a bad model.from before its weights are read: no checkpoint, or sizes in the job too.
void check_from(const JobFile& job);
/// Refuses a job whose checkpoint brings no tokenizer where another had to be named.
void check_tokenizer(const JobFile& job);

/// Fresh weights from the job's seed, or those of model.from with the job's mixers and the head of its objective.
std::unique_ptr<model::Trainable> make_model(const JobFile& job, const OfData& data, Progress& progress,
                                             const Cancellation& cancellation);

at::ScalarType weight_type(const JobFile& job);

/// Bytes of weights, gradients and AdamW's running means, with float32 masters of bfloat16 weights.
double state_bytes(const JobFile& job, double parameters);
/// Lower bound of the bytes of one pass.
double least_pass_bytes(const JobFile& job, const model::ModelConfig& config);
/// Throws Error(memory) where this process may not take what training of the checkpoint needs at the least
/// (core/base/process/free_memory.h): before its weights are read.
void expect_free_memory(const JobFile& job, const model::Inspection& inspection);
/// Throws Error limit, with the place of the key, for a job that needs more memory than the machine has, by what it
/// needs at the least: before any of it is taken.
void check_memory(const JobFile& job, const model::ModelConfig& config, double parameters);

/// Names everything that decides which number of the flat weights is what: SHA-256 of names, shapes and order.
std::string layout_hash(const model::Trainable& model);

}  // namespace headscope::training
