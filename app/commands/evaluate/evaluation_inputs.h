// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Inputs of `headscope evaluate` that are read before the first model: hay of RULER's tasks, items of lm-eval's; and
// the parts of each model's folder that these tasks need.

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/commands/evaluate/evaluation_options.h"
#include "core/base/io/output_file.h"
#include "core/checkpoint/checkpoint.h"
#include "core/evaluation/tasks.h"

namespace headscope::app {

/// Refuses options that do not go together: texts and data sets in one --data, --shots without a task for it, ...
void check_evaluation_options(const EvaluationOptions& options);

/// Source of the hay of RULER's tasks.
struct Hay {
    std::shared_ptr<const data::Essays> essays;  ///< null: no task needs any
    std::vector<std::filesystem::path> files;
};
Hay read_hay(const EvaluationOptions& options);

inline constexpr const char* kLongBenchOption = "longbench.";  ///< how --task-option longbench.rules=thudm begins
/// The task by the rules that --task-option names for it. Throws UsageError for others.
evaluation::HarnessTask with_rules(const EvaluationOptions& options, evaluation::HarnessTask task);

/// Items of lm-eval's tasks, in the order of the tasks.
struct DataSets {
    std::vector<std::unique_ptr<const evaluation::HarnessTask>> tasks;  ///< with their options; items point to them
    std::vector<std::shared_ptr<const evaluation::HarnessItems>> items;
    std::uint64_t seed = 0;  ///< that examples were drawn with
};
DataSets read_data_sets(const EvaluationOptions& options, const evaluation::Request& request);

/// Reads the questions of squad and squad_v2 from --data; the tokenizer is set.
void prepare_questions(const EvaluationOptions& options, const model::ModelConfig& config,
                       const Cancellation& cancellation, evaluation::Request& request);

/// True if a task's items come from --data instead of a generator.
bool is_ruler_read(const EvaluationOptions& options, const data::RulerTask& task);

/// Sets what RULER's tasks and lm-eval's need of a model's folder, and their items. `tokenizer` may be null.
void prepare_answers(const EvaluationOptions& options, const Hay& hay, const DataSets& sets,
                     const checkpoint::Checkpoint& checkpoint, const model::ModelConfig& config,
                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer, evaluation::Request& request);

bool asks_translations(const EvaluationOptions& options);
/// The search for a model's translations: options go before the model's files, these before Wu's penalty.
model::BeamOptions search_for(const EvaluationOptions& options, const checkpoint::Checkpoint& checkpoint);
/// Beams, penalty and stop of each model's search, for the results' settings; one value where all models have it.
void add_searches(const std::vector<model::BeamOptions>& searches, nlohmann::json& settings);

/// RULER's items as they are asked, for another harness: FOLDER/TASK/test.jsonl. Nothing stays of one that is not
/// published.
class ItemDump {
public:
    ItemDump(const std::filesystem::path& folder, const std::vector<const data::RulerTask*>& tasks,
             const std::vector<std::filesystem::path>& inputs);
    ~ItemDump();
    ItemDump(const ItemDump&) = delete;
    ItemDump& operator=(const ItemDump&) = delete;

    void add(const std::string& task, const data::RulerItem& item);
    void publish();

private:
    void make_folder(const std::filesystem::path& folder);

    std::map<std::string, std::unique_ptr<OutputFile>> files_;
    std::vector<std::filesystem::path> made_;
    bool published_ = false;
};

}  // namespace headscope::app
