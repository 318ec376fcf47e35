// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a model can be asked, by name: tasks on text, every generator of core/data, RULER's, whose answers the model
// says, lm-eval's on data sets, and what encoders and encoder-decoders are asked (labelled.h). Results are rows of an
// evaluation file. Threads: the compute thread. Errors: Error (usage for what does not fit the model), Stopped.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/evaluation/harness/harness_run.h"
#include "core/evaluation/labelled.h"
#include "core/evaluation/said_answers.h"
#include "core/evaluation/speed.h"
#include "core/evaluation/text_score.h"
#include "core/store/evaluation_file.h"

namespace headscope::evaluation {

/// windows, positions: of text; said: of RULER's, the model writes its answer; harness: of lm-eval's, on items that are
/// read from files; set: several by one name; spoilt, classes, translation: labelled.h's; speed: of any model.
enum class TaskKind { windows, positions, generator, said, harness, set, spoilt, classes, translation, speed };

struct Task {
    std::string name;
    std::string summary;
    TaskKind kind = TaskKind::generator;
    std::string metrics;  ///< names, for people: "token_perplexity, loss, ..."

    bool on_text() const {
        return kind == TaskKind::windows || kind == TaskKind::positions || kind == TaskKind::spoilt;
    }
    bool on_labelled_items() const { return kind == TaskKind::classes || kind == TaskKind::translation; }
};
const std::vector<Task>& tasks();
/// Error usage with the names that there are, nearest first.
const Task& find_task(const std::string& name);
/// The tasks of these names, those of a set in its place, each once. Throws what find_task does.
std::vector<std::string> expanded_tasks(const std::vector<std::string>& names);
/// RULER's tasks among these, in order and once each: ruler_retrieval is eight of them.
std::vector<const data::RulerTask*> ruler_tasks_of(const std::vector<std::string>& tasks);
/// lm-eval's among these, in order.
std::vector<const HarnessTask*> harness_tasks_of(const std::vector<std::string>& tasks);

struct Request {
    std::vector<std::string> tasks;      ///< expanded
    std::vector<std::int64_t> lengths;   ///< context lengths; empty: one that suits model and task
    std::int64_t training_length = 0;    ///< what suits tasks on text; 0: not known, the model's positions do
    std::int64_t stride = 0;             ///< of text tasks; 0: disjoint windows
    std::optional<std::int64_t> prefix;  ///< TextOptions::prefix
    std::int64_t most_tokens = 0;        ///< of text tasks; 0: all
    std::int64_t sequences = 256;        ///< of generators' tasks
    std::int64_t items = 500;            ///< of RULER's tasks, at each length
    std::uint64_t seed = 1;              ///< of generators' tasks, of which the held-out part is read, and of RULER's
    /// Options of tasks by name: a generator's, as datasets/NAME.json has them, and position_perplexity's bucket. What
    /// is not named has its default.
    std::map<std::string, std::map<std::string, double>> generator_options;
    std::map<std::string, std::int64_t> generator_lengths;  ///< used where `lengths` is empty
    /// The generator that made what the model was trained on, which fits it: named in errors. Empty: none, or unknown.
    std::string trained_on;
    SaidAnswers said;     ///< for RULER's tasks, and lm-eval's whose answers are said
    HarnessWork harness;  ///< for lm-eval's: their items
    LabelledWork labelled;
    SpeedOptions speed;
    /// Sees each item of RULER's, lm-eval's, classify and translation once it is answered, in order.
    std::function<void(const AnsweredItem&)> on_answer;
    ScoreOptions score;
};

/// What a model may read at once; 0: anything.
std::int64_t most_read(const Request& request, const model::ModelConfig& config);

/// Refuses what can be refused before weights are read: unknown tasks, lengths beyond the model's positions, text tasks
/// without documents, ids of generators that the model lacks, lengths that no item of RULER's fits, tasks of lm-eval's
/// without items.
void check_request(const Request& request, const model::ModelConfig& config, bool has_documents);

/// Runs every task at every length, lm-eval's first; rows are for model number `model_index`. Tasks on text score each
/// of `texts`, a row of its own for each. Progress counts tasks, lengths and texts.
std::vector<store::EvaluationResult> run_tasks(model::Model& model, const Request& request,
                                               std::span<const NamedText> texts, std::int64_t model_index,
                                               Progress& progress);

}  // namespace headscope::evaluation
