// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/predictions.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/evaluate/evaluation_inputs.h"
#include "app/commands/evaluate/evaluation_items.h"
#include "app/commands/evaluate/evaluation_output.h"
#include "app/commands/option_use.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/base/json/json_records.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/evaluation/harness/answered_item.h"
#include "core/evaluation/harness/harness_run.h"
#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/tasks/run.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/evaluation/evaluation_texts.h"

namespace headscope::app {

namespace fs = std::filesystem;

namespace {

/// Stored answers with what they are scored against.
struct StoredAnswers {
    std::vector<fs::path> inputs;
    std::string sha256;  ///< of the answers' file
    std::function<std::vector<store::EvaluationResult>(const evaluation::OnAnswer& answer)> score;
};

/// The file itself; in a folder of several tasks TASK.jsonl, or NAME.jsonl as LongBench's pred.py writes it.
fs::path answers_of(const fs::path& predictions, const evaluation::HarnessTask& task) {
    std::error_code ignored;
    if (!fs::is_directory(predictions, ignored)) return predictions;
    std::string name = task.configuration;
    if (evaluation::is_longbench(task) && name.ends_with("_e")) name.resize(name.size() - 2);
    for (const std::string& stem : {task.name, name})
        if (fs::path file = predictions / (stem + ".jsonl"); !stem.empty() && fs::exists(file, ignored)) return file;
    throw Error(ErrorCode::io, shown(predictions), "expected answers of " + task.name + ", " + task.name + ".jsonl",
                "found none");
}

StoredAnswers stored_of_harness(const EvaluationOptions& options, const evaluation::HarnessTask& task,
                                const Cancellation& cancellation) {
    evaluation::ItemsOptions reading;
    reading.limit = options.limit;
    auto ruled = std::make_shared<const evaluation::HarnessTask>(with_rules(options, task));  // items point to it
    auto items = std::make_shared<const evaluation::HarnessItems>(
        evaluation::read_items(options.data.front(), *ruled, reading, &cancellation));
    std::vector<std::string> answers;
    const CancellationScope scope(cancellation);
    StoredAnswers stored;
    const fs::path file = answers_of(options.predictions, task);
    stored.sha256 = read_json_records(file, "answers", [&](const JsonView& record) {
        answers.push_back(record.at(record.has("generated") ? "generated" : "pred").string());
        return true;
    });
    stored.inputs.push_back(file);
    for (const evaluation::DataFile& one : items->files) stored.inputs.push_back(one.path);
    stored.score = [ruled, items, answers = std::move(answers)](const evaluation::OnAnswer& answer) {
        return evaluation::score_answers(*items, answers, answer);
    };
    return stored;
}

StoredAnswers stored_of_questions(const EvaluationOptions& options, const Cancellation& cancellation) {
    evaluation::QuestionItems items =
        evaluation::read_question_items(options.data.front(), options.tasks.front(), cancellation);
    if (options.limit > 0 && options.limit < std::ssize(items.questions))
        items.questions.resize(static_cast<std::size_t>(options.limit));
    const CancellationScope scope(cancellation);
    StoredAnswers stored;
    stored.inputs.insert(stored.inputs.end(), {options.predictions, items.file});
    auto said = evaluation::read_stored_answers(options.predictions, items, stored.sha256);
    stored.score = [items = std::move(items), said = std::move(said)](const evaluation::OnAnswer& answer) {
        std::vector<store::EvaluationResult> rows;
        evaluation::add_question_rows(items, said, 0, 0, answer, rows);
        return rows;
    };
    return stored;
}

}  // namespace

void evaluate_predictions(const EvaluationOptions& options, const Cancellation& cancellation) {
    check_options("evaluate", options.given, {"--predictions"});
    if (!options.models.empty())
        throw UsageError("--predictions: expected no model with it; found " + escaped(options.models.front()));
    const fs::path file = options.predictions;
    std::error_code ignored;
    const bool several = fs::is_directory(file, ignored);
    const std::vector<std::string> names = evaluation::expanded_tasks(options.tasks);
    if (names.empty() || (!several && names.size() != 1) || options.data.size() != 1)
        throw UsageError("--predictions: expected one --task (for a folder, one or more) and one --data; found " +
                         std::to_string(names.size()) + " and " + std::to_string(options.data.size()));
    std::vector<const evaluation::HarnessTask*> tasks;
    for (const std::string& name : names) {
        tasks.push_back(evaluation::find_harness_task(name));
        if (tasks.back() == nullptr && (several || !evaluation::find_task(name).kind->asks_questions()))
            throw UsageError(std::string("--predictions: expected one of lm-eval's tasks") +
                             (several ? "" : ", squad or squad_v2") + "; found " + escaped(name));
    }
    for (const std::string& option : options.task_options)
        if (!option.starts_with(kLongBenchOption) || std::none_of(tasks.begin(), tasks.end(), [](const auto* task) {
                return task != nullptr && evaluation::is_longbench(*task);
            }))
            throw UsageError(
                "--task-option: expected longbench.rules and one of LongBench's tasks with --predictions; found " +
                escaped(option));
    std::vector<StoredAnswers> all;
    std::vector<fs::path> inputs;
    std::string digests;
    for (const evaluation::HarnessTask* task : tasks) {
        all.push_back(task ? stored_of_harness(options, *task, cancellation)
                           : stored_of_questions(options, cancellation));
        inputs.insert(inputs.end(), all.back().inputs.begin(), all.back().inputs.end());
        digests += all.back().sha256;
    }
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);
    store::Evaluation evaluation;
    evaluation.settings_json = nlohmann::json{
        {"tasks", options.tasks},
        {"data", options.data},
        {"predictions", options.predictions},
        {"limit", options.limit},
        {"task_options",
         options.task_options}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    store::EvaluatedModel& model = evaluation.models.emplace_back();
    model.name = store::short_word((several ? fs::weakly_canonical(file, ignored).filename() : file.stem()).string());
    model.path = file.string();
    model.sha256 = several ? sha256_hex(digests) : digests;
    model.variant = store::short_word(options.variant.empty() ? model.name : options.variant);
    ItemLines lines(options.items, options.prompts, inputs);
    const bool keep_items = options.output.ends_with(".h5");
    for (const StoredAnswers& stored : all) {
        const auto rows = stored.score([&](const evaluation::AnsweredItem& answered) {
            lines.add(answered, 0);
            if (keep_items) evaluation.items.push_back(evaluation::evaluated_answer(answered, 0));
        });
        evaluation.results.insert(evaluation.results.end(), rows.begin(), rows.end());
    }
    const auto means = evaluation::longbench_means(evaluation.results);
    evaluation.results.insert(evaluation.results.end(), means.begin(), means.end());
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    lines.publish();
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_evaluation(evaluation);
}

}  // namespace headscope::app
