// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results of evaluations, `*.evaluation.h5`: what models scored on tasks at lengths, as one long table with a row a
// number. Written by `headscope evaluate`, `headscope reproduce` and `headscope cost --latency`; figures
// (context-perplexity, position-perplexity, ruler, latency, tasks, ablation, scaling, retention) read it. Layout
// (docs/file-formats.md):
// `/` attributes format = "headscope-evaluation", format_version = 7, program_version, created, settings (JSON);
// `/models/<member>` [models]; `/results/<member>` [results]; `/items/<member>` [items], with the texts of all, one
// behind the other, in `/items/texts` [bytes].
// Threads: any, under Hdf5Lock. Errors: Error (io; format for a file that is none).

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace headscope::store {

/// A model in one configuration: the same checkpoint with other layers left out is another one.
struct EvaluatedModel {
    std::string name;          ///< for people and legends: the folder's or the run's name
    std::string path;          ///< where it was read from
    std::string sha256;        ///< of its weights (Checkpoint::fingerprint)
    std::string mixer;         ///< of the layers that are not standard, or "several"; standard if all are
    std::string layout;        ///< "uniform", "even", ...: the layout that its layers have, or "custom"
    std::string layer_mixers;  ///< mixer of each layer, separated by commas
    std::string skipped;       ///< layers left out, "0,2,4"; empty: none
    std::int64_t parameters = 0;
    std::int64_t layers = 0;
    std::int64_t training_length = 0;  ///< tokens of its training's sequences, or its positions; 0: no limit
    std::int64_t seed = -1;            ///< of the run that trained it; -1: not known
    std::string job{};  ///< SHA-256 of its training job but for the seed: models that have the same are seeds of one
    /// Weights of all attention sublayers with their output projections, without biases (thesis, Tables 3.1 to 3.3),
    /// and of what the model reads words by (Table 2.2); -1: not known.
    std::int64_t attention_parameters = -1, embedding_parameters = -1;
    std::string variant{};         ///< name in tables of benchmarks: the job's, or default_variant()
    std::string benchmark_task{};  ///< task that the job was tuned for; empty: the results' names

    bool operator==(const EvaluatedModel&) const = default;
};

/// "mhe_mul", "mlp even": the mixer, and a layout other than uniform.
std::string default_variant(const EvaluatedModel& model);

struct EvaluationResult {
    std::int64_t model = 0;   ///< index in Evaluation::models
    std::string task;         ///< "perplexity", "mqar", ... (headscope list tasks)
    std::string metric;       ///< "token_perplexity", "word_perplexity", "bits_per_byte", "accuracy", "loss", ...
    std::int64_t length = 0;  ///< context length in tokens
    double value = std::numeric_limits<double>::quiet_NaN();
    double error = std::numeric_limits<double>::quiet_NaN();  ///< standard error; NaN: not known
    std::int64_t count = 0;                                   ///< tokens or answers that it is a mean over
    std::int64_t shots = 0;                                   ///< examples in the prompt
    std::string text{};         ///< name of the text that was scored; empty: the task brings its own items
    std::string subset{};       ///< part of the task's items, such as a length class; empty: all of them
    std::string data_sha256{};  ///< SHA-256 of the text or data file; empty: not known, or generated
    std::int64_t cut = 0;       ///< items that lost tokens to the length; -1: not known (files before version 6)
};

/// One item of a task as one model answered it: what people look at, one by one.
struct EvaluatedItem {
    std::int64_t model = 0;  ///< index in Evaluation::models
    std::string task;
    std::int64_t length = 0, shots = 0;   ///< as the task's results have them
    std::int64_t item = 0;                ///< its number in the data, from 0
    std::int64_t gold = -1, chosen = -1;  ///< options; -1: there are none
    bool right = false;
    /// A JSON object. Of options {"requests": [{"context", "continuation", "loglikelihood", "greedy", "pieces":
    /// [[text of a scored token, its log-likelihood], ...]}, ...]}; of said answers {"prompt", "generated", "answers"}.
    /// At most 256 MiB.
    std::string texts;
    std::string subset{};   ///< part of the task's items, as EvaluationResult has it
    std::string metrics{};  ///< a JSON object: this item's value of each metric that the task's rows average

    bool operator==(const EvaluatedItem&) const = default;
};

struct Evaluation {
    std::vector<EvaluatedModel> models;
    std::vector<EvaluationResult> results;
    std::vector<EvaluatedItem> items;  ///< written; read_evaluation leaves them: read_items
    std::int64_t item_count = 0;       ///< how many a file that was read has
    std::string settings_json = "{}";
    std::string program_version, created;  ///< filled in by write_evaluation when empty

    /// The first row of a model, task, metric and length; nullptr when there is none.
    const EvaluationResult* find(std::int64_t model, const std::string& task, const std::string& metric,
                                 std::int64_t length) const;
};

/// Adds the models and results of `one`, whose items are left out.
void append(Evaluation& all, Evaluation one);

/// Whole or not at all; `inputs` must not be overwritten.
void write_evaluation(const std::filesystem::path& path, const Evaluation& evaluation,
                      std::span<const std::filesystem::path> inputs = {});
Evaluation read_evaluation(const std::filesystem::path& path);

/// The items of a file without their texts: a row each, in order.
std::vector<EvaluatedItem> read_items(const std::filesystem::path& path);
/// The texts of one row of them: reads that part of the file alone. Throws Error usage for a row that there is not.
std::string read_item_texts(const std::filesystem::path& path, std::int64_t row);

/// The same table as CSV: a row a result, the model's members repeated in each. For spreadsheets and for `-o x.csv`.
std::string evaluation_csv(const Evaluation& evaluation);

}  // namespace headscope::store
