// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Evaluation tasks by name: on text, generators of core/data, RULER's, whose answers the model generates, lm-eval's on
// data sets, and those of encoders and encoder-decoders (labelled.h). Results are rows of an evaluation file. Threads:
// the compute thread. Errors: Error (usage for what does not fit the model), Stopped.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/evaluation/generated_answers.h"
#include "core/evaluation/harness/harness_run.h"
#include "core/evaluation/labelled.h"
#include "core/evaluation/questions.h"
#include "core/evaluation/speed.h"
#include "core/evaluation/text_score.h"
#include "core/model/config.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::evaluation {

struct Request;
struct Task;
struct Unit;
class TaskRun;

/// Behavior of the tasks of one kind; a class each in tasks/.
class TaskKind {
public:
    virtual ~TaskKind() = default;

    /// Name of the kind in rules about options (app/commands); `given`: its items are files of --data.
    virtual std::string words(bool given) const = 0;
    virtual bool on_text() const { return false; }
    virtual bool is_set() const { return false; }  ///< one name for several tasks
    /// Offered in the window without a data set.
    virtual bool offered() const { return false; }
    /// Units are made with those of the kind, or the task has none.
    virtual bool runs_apart() const { return false; }
    /// One pass over a text serves all tasks of the kind.
    virtual bool shares_pass() const { return false; }
    /// Items that the task reads; null: it reads none.
    virtual std::vector<LabelledItems>* items(LabelledWork& /*work*/) const { return nullptr; }
    /// Reads Request::questions.
    virtual bool asks_questions() const { return false; }
    /// Those of the request, or one that suits model and task.
    virtual std::vector<std::int64_t> lengths(const Request& request, const Task& task,
                                              const model::ModelConfig& config) const;
    virtual void check(const Request& request, const Task& task, const model::ModelConfig& config,
                       bool has_documents) const;
    /// Adds the rows of one unit to the run.
    virtual void run(TaskRun& run, const Unit& unit) const = 0;

protected:
    virtual void check_inputs(const Request&, const Task&, const model::ModelConfig&) const {}
    virtual void check_count(const Task&, std::size_t /*lengths*/) const {}
    virtual void check_at(const Request&, const Task&, const model::ModelConfig&, std::int64_t /*length*/) const {}
};

struct Task {
    std::string name;
    std::string summary;
    const TaskKind* kind;
    std::string metrics;  ///< names, for people: "token_perplexity, loss, ..."
};
const std::vector<Task>& tasks();
/// Error usage with all names, the nearest first.
const Task& find_task(const std::string& name);
/// True for classify, translation, squad and squad_v2.
bool reads_labelled_items(const std::string& task);
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
    GeneratedAnswers said;  ///< for RULER's tasks, and lm-eval's whose answers are said
    HarnessWork harness;    ///< for lm-eval's: their items
    LabelledWork labelled;
    std::vector<QuestionItems> questions;  ///< for squad and squad_v2
    SpeedOptions speed;
    /// Receives each item of RULER's, lm-eval's, SQuAD's, classify and translation once it is answered, in
    /// order.
    std::function<void(const AnsweredItem&)> on_answer;
    ScoreOptions score;
};

/// Most tokens that the model reads at once; 0: no limit.
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
