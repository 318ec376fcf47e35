// SPDX-License-Identifier: GPL-3.0-or-later
// Data sets of other people in a folder (--data-sets): evaluates the replay's models on those that lie there, tunes
// models for others, and makes the tables of the report.

#include <cmath>

#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/reproduce/files.h"
#include "core/reproduce/runner.h"

namespace headscope::reproduce {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kUsualClasses = 2;

/// Items to train on and to evaluate on; empty: none.
struct TaskFiles {
    fs::path train, held_out;
    bool complete() const { return !train.empty() && !held_out.empty(); }
};

/// A split under the names that exports of the hub's data sets have; empty: none.
fs::path split_of(const fs::path& place, const std::string& name) {
    for (const char* ending :
         {".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".parquet", "-00000-of-00001.parquet"})
        if (fs::path path = place / (name + ending); fs::exists(path)) return path;
    return {};
}

/// In FOLDER/SET/TASK or FOLDER/TASK, whichever has both. MNLI's split to evaluate on has a name of its own.
TaskFiles files_of(const fs::path& folder, const std::string& set, const std::string& task) {
    for (const fs::path& place : {folder / set / task, folder / task}) {
        TaskFiles found{split_of(place, "train"), split_of(place, "validation")};
        if (found.held_out.empty()) found.held_out = split_of(place, "validation_matched");
        if (found.complete()) return found;
    }
    return {};
}

/// Scores are shares but for perplexities; a length is named where a model was asked at several.
std::string cell(const store::Evaluation& all, const std::string& label, const std::string& task,
                 const std::string& metric) {
    const bool perplexity = metric.find("perplexity") != std::string::npos;
    std::vector<std::string> numbers;
    for (const auto& result : all.results) {
        const auto& model = all.models[static_cast<std::size_t>(result.model)];
        if (model.name == label && result.task == task && result.metric == metric && std::isfinite(result.value))
            numbers.push_back(perplexity ? printf_text("%.2f", result.value) : printf_text("%.1f", 100 * result.value));
    }
    return numbers.empty() ? "–" : joined_text(numbers, ", ");
}

}  // namespace

/// The folder given now, or in an earlier session.
fs::path Runner::data_sets_folder() const {
    const fs::path kept = options_.folder / "data-sets.json";
    if (!options_.data_sets.empty()) {
        write_whole_file(kept, json_text({{"folder", fs::absolute(options_.data_sets).string()}}));
        return fs::absolute(options_.data_sets);
    }
    if (!fs::exists(kept)) return {};
    return JsonView(read_json_file(kept, kLargestPlan, "data sets"), kept.string()).at("folder").string();
}

void Runner::do_data_sets() {
    const fs::path folder = data_sets_folder();
    if (folder.empty()) return;
    for (const JsonView& view : paper_.rows("data_set")) {
        const std::string name = view.at("name").string(), title = view.at("title").string();
        ReportTable table{title, {"model"}, {}, ""};
        store::Evaluation all;
        const std::vector<const Trial*> trials = done_trials(view);
        if (trials.empty()) continue;
        Strings lacking, labels;
        std::vector<std::pair<std::string, std::string>> columns;  // task and metric
        std::string reason;
        for (const std::string& task : view.at("tasks").strings()) {
            std::string metric = view.at("metric").string();
            if (view.has("metrics")) metric = view.at("metrics").string_or(task, metric);
            const std::int64_t before = std::ssize(all.results);
            for (const Trial* trial : trials) {
                const fs::path output =
                    options_.folder / "data-sets" / (name + "-" + task + "-" + trial->name + ".evaluation.h5");
                try {
                    if (!fs::exists(output)) {
                        report_progress(title + ": " + task + " with " + trial->name);
                        if (view.has("tuned"))
                            tune(*trial, view, task, folder, output);
                        else
                            compute(
                                {"evaluate", last_model(*trial).string(), "--task", task, "--data", folder.string()},
                                view.at("words").strings(), *trial, output);
                    }
                    store::Evaluation own = store::read_evaluation(output);
                    for (auto& model : own.models) model.name = trial_of(*trial->model, *trial->stack).label();
                    if (!contains(labels, own.models.front().name)) labels.push_back(own.models.front().name);
                    append(all, std::move(own));
                } catch (const Error& error) {
                    if (reason.empty()) reason = error.what();
                    break;  // the data are the same for the others
                }
            }
            if (std::ssize(all.results) == before)
                lacking.push_back(task);
            else
                columns.emplace_back(task, metric);
        }
        if (!lacking.empty())
            missing_.push_back(title + ": " + shown(folder) + " has no usable " + list_text(lacking, lacking.size()) +
                               (reason.empty() ? "" : " (" + reason + ")") + ".");
        if (all.models.empty()) continue;
        for (const auto& [task, metric] : columns) table.head.push_back(task + ", " + metric);
        for (const std::string& label : labels) {
            table.rows.push_back({label});
            for (const auto& [task, metric] : columns) table.rows.back().push_back(cell(all, label, task, metric));
        }
        table.text = view.string_or("text", "");
        tables_.push_back(std::move(table));
        all.settings_json = nlohmann::json{{"reproduction", paper_.name}, {"data_sets", folder.string()}}.dump();
        const fs::path file = options_.folder / (name + ".evaluation.h5");
        store::write_evaluation(file, all);
        Strings words{file.string(), "--figure"};
        const Strings recipe = view.at("recipe").strings();
        words.insert(words.end(), recipe.begin(), recipe.end());
        draw_figure(name, title, words);
    }
}

/// Tunes a trial for a task as the stage `tuned` is, on the task's items, and evaluates the result.
void Runner::tune(const Trial& trial, const JsonView& view, const std::string& task, const fs::path& folder,
                  const fs::path& output) {
    const TaskFiles files = files_of(folder, view.at("name").string(), task);
    if (!files.complete())
        throw Error(ErrorCode::usage, shown(folder), "expected train.jsonl and validation.jsonl in a folder " + task,
                    "found none");
    const Stage& stage = paper_.stage(view.at("tuned").string());
    training::JobFile job = job_of(plan_, trial, stage);
    job.name = trial.label() + " " + task;
    job.data.text = {files.train.string()};
    job.data.validation_files = {files.held_out.string()};
    job.data.corpus.clear();
    job.data.generator.reset();
    job.data.objective.classes =
        view.has("classes") ? view.at("classes").integer_or(task, kUsualClasses) : kUsualClasses;
    job.benchmark = {trial_of(*trial.model, *trial.stack).label(), task};
    const std::string name = trial.name + "-" + task;
    const fs::path run = options_.folder / "runs" / name;
    train(job, name, run);
    compute(
        {"evaluate", last_snapshot(run).string(), "--task", "classify", "--data", task + "=" + files.held_out.string()},
        {}, trial, output);
}

}  // namespace headscope::reproduce
