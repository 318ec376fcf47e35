// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A training job as one value: what the TOML file says (docs/training.md, "The job"), what the window's form edits
// and what every snapshot holds. job_keys.h is the one table of its keys; nothing here reads data or weights. No torch
// here: the window includes this.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/objectives/list.h"
#include "core/training/job/toml_document.h"

namespace headscope::training {

struct ModelSettings {
    std::string preset = "tiny-1m";                    ///< empty with `from`, or where `config` has all sizes
    std::string from;                                  ///< a checkpoint to go on from; its mixers may be replaced
    std::string weights = "auto";                      ///< residence of weights that are only read
    std::string mixer;                                 ///< empty: the preset's or the checkpoint's own
    std::string layout = "uniform";                    ///< which layers are standard beside `mixer`
    std::vector<std::string> layers;                   ///< the mixer of each layer, instead of mixer and layout
    nlohmann::json mixers = nlohmann::json::object();  ///< options by mixer name
    nlohmann::json config = nlohmann::json::object();  ///< keys of config.json, which go before the preset's
};

struct TrainingSettings {
    /// How long: one of the four.
    std::optional<std::int64_t> steps = 1000, tokens;
    std::optional<double> minutes;
    std::optional<double> epochs;       ///< passes over the training data
    std::int64_t batch = 16;            ///< sequences of one part of a step, of all processes together
    std::int64_t accumulate = 1;        ///< parts of a step, passes but by_sequence()
    std::string precision = "float32";  ///< or bfloat16, with float32 master weights
    double clip = 1.0;                  ///< of the gradient's norm; 0: none
    double dropout = 0.0;
    double attention_dropout = 0.0;
    double z_loss = 0.0;
    std::int64_t threads = 0;    ///< 0: all
    std::string device = "cpu";  ///< as --device

    /// Each sequence is a pass of its own, so that sums of gradients do not depend on batch and accumulate.
    bool by_sequence() const { return attention_dropout > 0; }
    std::int64_t pass_sequences() const { return by_sequence() ? 1 : batch; }
    bool several_passes() const { return accumulate > 1 || by_sequence(); }
};

struct OptimizerSettings {
    std::string name = "adamw";
    double learning_rate = 4e-4;  ///< the peak
    std::array<double, 2> betas{0.9, 0.95};
    double eps = 1e-8;
    double weight_decay = 0.1;
};

struct ScheduleSettings {
    std::string kind = "cosine";
    /// How long the rate rises: at most one of the three; a share is of the whole run's updates.
    std::optional<std::int64_t> warmup_steps = 100, warmup_tokens;
    std::optional<double> warmup_share;
    double warmup_start = 0.0;  ///< the rate that warm-up rises from
    double minimum_rate = 4e-5;
    double decay_share = 0.2;  ///< of wsd: the last part, in which the rate falls
};

struct EvaluationSettings {
    /// One of the two.
    std::optional<std::int64_t> every = 100;  ///< steps; 0: never
    std::optional<double> every_epochs;       ///< passes over the training data
    std::int64_t batches = 8;
    std::string metric = "loss";  ///< that snapshots/best and patience follow: one of metrics_of()
    std::int64_t patience = 0;    ///< evaluations in a row without a better metric that end the run; 0: never

    bool evaluates() const { return every_epochs || every.value_or(0) > 0; }
};

struct SnapshotSettings {
    std::int64_t every = 200;  ///< steps; 0: only at the end
    std::int64_t keep = 3;
};

struct ProbeSettings {
    std::int64_t every = 50;  ///< steps; 0: never
    std::int64_t sequences = 4, length = 256;
};

struct SampleSettings {
    std::int64_t every = 200;  ///< steps; 0: never
    std::int64_t tokens = 64;
    std::string prompt;
    double temperature = 0.8;
};

/// Place of the tuned model in tables of benchmarks.
struct BenchmarkSettings {
    std::string variant;  ///< empty: the mixer's name, and its layout other than uniform
    std::string task;     ///< empty: the results' names
};

struct JobFile {
    std::string name;
    std::int64_t seed = 1;
    ModelSettings model;
    data::DataSettings data;
    std::int64_t data_workers = 1;
    TrainingSettings training;
    OptimizerSettings optimizer;
    ScheduleSettings schedule;
    EvaluationSettings evaluation;
    SnapshotSettings snapshots;
    ProbeSettings probe;
    SampleSettings sample;
    BenchmarkSettings benchmark;
    /// True if data.tokenizer was given; else it follows standard_tokenizer() of the job, also when that changes.
    bool tokenizer_given = false;

    // Not part of the job: where it was read.
    std::string where = "job";                ///< names it in errors
    std::filesystem::path base;               ///< what its relative paths start from; empty: the working folder
    std::map<std::string, TextPlace> places;  ///< of its keys, by JSON pointer

    /// Sequences of a step, and tokens that they are.
    std::int64_t sequences() const { return training.batch * training.accumulate; }
    std::int64_t step_tokens() const { return sequences() * data.sequence_length; }
    /// An evaluation that finds a better metric is followed by a snapshot, between those of snapshots.every.
    bool keeps_best() const { return snapshots.every > 0 && (evaluation.metric != "loss" || evaluation.patience > 0); }
};

using data::LossWords;
LossWords loss_words(const data::ObjectiveSettings& objective);
/// True if shares of right answers are measured with the loss.
bool has_accuracy(const data::ObjectiveSettings& objective);
/// Values of evaluation.metric for this objective; loss first.
std::vector<std::string> metrics_of(const data::ObjectiveSettings& objective);

/// File whose first tokens fixed_seq_qk layers read, instead of the training text's; empty: none. It is an option of
/// the job alone: mixer_options() leaves it out.
inline constexpr const char* kGuideText = "model.mixers.fixed_seq_qk.text";
std::string guide_text(const JobFile& job);
/// model.mixers without the options that no configuration holds.
nlohmann::json mixer_options(const JobFile& job);

/// Default of data.tokenizer: "bytes", or with model.from that checkpoint, for its tokenizer.
std::string standard_tokenizer(const JobFile& job);

/// Reads a job. `where` names it in errors, which have line, column, key, expectation (with the nearest valid name for
/// an unknown one) and finding. Error format, limit for numbers out of range, usage for keys that contradict each
/// other. Checks that need data, model or machine come later.
JobFile read_job(std::string_view text, const std::string& where);
/// The same from a file of at most 1 MB, whose folder is the job's `base`.
JobFile read_job_file(const std::filesystem::path& path);

/// Changes one key, as --set does: "training.steps=500". The value is TOML, or a text without quotes. A key that
/// stands instead of others (minutes of steps) takes their place; relative paths become those of the working folder.
void set_key(JobFile& job, const std::string& assignment);

/// The whole job as TOML, every key written out; `explained`: with a line of help before each.
std::string job_text(const JobFile& job, bool explained = false);

/// A line for each key that the weights follow from, but for the seed: the same for runs that differ by that alone.
std::string text_but_for_seed(const JobFile& job);

/// Paths that no longer depend on where the job was read: what a run folder keeps.
JobFile with_absolute_paths(const JobFile& job);

/// "section.key: A, was B" for each key that differs; `only_fixed`: leaves out those that a resumed run may change, and
/// its end (run_end.h).
std::vector<std::string> job_differences(const JobFile& job, const JobFile& was, bool only_fixed);

/// `error` with the place of the job's key that it is about in front, for what others found wrong with its value.
Error error_at_key(const JobFile& job, const std::string& key, const Error& error);
/// The same for what is wrong with its data, whose errors name a key of [data], or a file.
Error error_in_data(const JobFile& job, const Error& error);

}  // namespace headscope::training
