// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/predictions.h"

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
#include "core/base/json/json_records.h"
#include "core/base/process/cancellation_scope.h"
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
    stored.sha256 = read_json_records(options.predictions, "answers", [&](const JsonView& record) {
        answers.push_back(record.at(record.has("generated") ? "generated" : "pred").string());
        return true;
    });
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
    stored.inputs.push_back(items.file);
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
        throw UsageError("--predictions: no model is expected beside it; found " + escaped(options.models.front()));
    if (options.tasks.size() != 1 || options.data.size() != 1)
        throw UsageError("--predictions: one --task and one --data are expected beside it; found " +
                         std::to_string(options.tasks.size()) + " and " + std::to_string(options.data.size()));
    const evaluation::HarnessTask* task = evaluation::find_harness_task(options.tasks.front());
    if (task == nullptr && !evaluation::find_task(options.tasks.front()).kind->asks_questions())
        throw UsageError("--predictions: one of lm-eval's tasks, squad or squad_v2 is expected beside it; found " +
                         escaped(options.tasks.front()));
    const fs::path file = options.predictions;
    for (const std::string& option : options.task_options)
        if (task == nullptr || !evaluation::is_longbench(*task) || !option.starts_with(kLongBenchOption))
            throw UsageError(
                "--task-option: longbench.rules of one of LongBench's tasks is expected beside "
                "--predictions; found " +
                escaped(option));
    const StoredAnswers stored =
        task ? stored_of_harness(options, *task, cancellation) : stored_of_questions(options, cancellation);
    std::vector<fs::path> inputs{file};
    inputs.insert(inputs.end(), stored.inputs.begin(), stored.inputs.end());
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);
    store::Evaluation evaluation;
    evaluation.settings_json = nlohmann::json{
        {"tasks", options.tasks},
        {"data", options.data},
        {"predictions", options.predictions},
        {"task_options",
         options.task_options}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    store::EvaluatedModel& model = evaluation.models.emplace_back();
    model.name = store::short_word(file.stem().string());
    model.path = file.string();
    model.sha256 = stored.sha256;
    model.variant = store::short_word(options.variant.empty() ? model.name : options.variant);
    ItemLines lines(options.items, options.prompts, inputs);
    evaluation.results = stored.score([&](const evaluation::AnsweredItem& answered) { lines.add(answered, 0); });
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    lines.publish();
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_evaluation(evaluation);
}

}  // namespace headscope::app
