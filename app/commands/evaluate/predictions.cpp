// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/predictions.h"

#include <filesystem>
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
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/evaluation/evaluation_texts.h"

namespace headscope::app {

namespace fs = std::filesystem;

void evaluate_predictions(const EvaluationOptions& options, const Cancellation& cancellation) {
    check_options("evaluate", options.given, {"--predictions"});
    if (!options.models.empty())
        throw UsageError("--predictions: no model is expected beside it; found " + escaped(options.models.front()));
    if (options.tasks.size() != 1 || options.data.size() != 1)
        throw UsageError("--predictions: one --task and one --data are expected beside it; found " +
                         std::to_string(options.tasks.size()) + " and " + std::to_string(options.data.size()));
    const evaluation::HarnessTask* task = evaluation::find_harness_task(options.tasks.front());
    if (task == nullptr)
        throw UsageError("--predictions: one of lm-eval's tasks is expected beside it; found " +
                         escaped(options.tasks.front()));
    const fs::path file = options.predictions;
    evaluation::ItemsOptions reading;
    reading.limit = options.limit;
    const evaluation::HarnessItems items = evaluation::read_items(options.data.front(), *task, reading, &cancellation);
    std::vector<std::string> answers;
    const CancellationScope scope(cancellation);
    const std::string sha256 = read_json_records(file, "answers", [&](const JsonView& record) {
        answers.push_back(record.at(record.has("generated") ? "generated" : "pred").string());
        return true;
    });
    std::vector<fs::path> inputs{file};
    for (const evaluation::DataFile& one : items.files) inputs.push_back(one.path);
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);
    store::Evaluation evaluation;
    evaluation.settings_json =
        nlohmann::json{{"tasks", options.tasks}, {"data", options.data}, {"predictions", options.predictions}}.dump(
            -1, ' ', false, nlohmann::json::error_handler_t::replace);
    store::EvaluatedModel& model = evaluation.models.emplace_back();
    model.name = store::short_word(file.stem().string());
    model.path = file.string();
    model.sha256 = sha256;
    model.variant = store::short_word(options.variant.empty() ? model.name : options.variant);
    ItemLines lines(options.items, options.prompts, options.output, inputs);
    evaluation.results = evaluation::score_answers(
        items, answers, [&](const evaluation::AnsweredItem& answered) { lines.add(answered, 0); });
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    lines.publish();
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_evaluation(evaluation);
}

}  // namespace headscope::app
