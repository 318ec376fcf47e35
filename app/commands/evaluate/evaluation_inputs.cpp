// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/evaluate/evaluation_inputs.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

#include "app/commands/option_use.h"
#include "core/analysis/input.h"
#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/sources.h"
#include "core/model/generate/generate.h"
#include "core/model/objectives/objective.h"

namespace headscope::app {

namespace fs = std::filesystem;

namespace {

/// More text than the longest context needs; what is shorter is read again from its begin.
constexpr std::size_t kHay = std::size_t{64} << 20U;
constexpr std::uint64_t kShotsSeed = 1234;  ///< lm-eval's

[[noreturn]] void refuse_option(const std::string& option, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
}

bool on_text(const std::string& task) {
    return evaluation::find_task(task).kind->on_text();
}

/// The kinds of the tasks, as option_use.cpp has them.
std::vector<std::string> option_kinds(const EvaluationOptions& options) {
    std::vector<std::string> kinds;
    for (const std::string& name : options.tasks) {
        const evaluation::TaskKind& kind = *evaluation::find_task(name).kind;
        const auto ruler = evaluation::ruler_tasks_of({name});
        for (const auto* task : ruler) kinds.push_back(kind.words(is_ruler_read(options, *task)));
        if (ruler.empty() && !kind.is_set()) kinds.push_back(kind.words(!options.data.empty()));
    }
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return kinds;
}

}  // namespace

void check_evaluation_options(const EvaluationOptions& options) {
    const auto ruler = evaluation::ruler_tasks_of(options.tasks);
    const auto harness = evaluation::harness_tasks_of(options.tasks);
    const bool text = std::any_of(options.tasks.begin(), options.tasks.end(), on_text);
    if (!options.data.empty() && text && !(ruler.empty() && harness.empty()))
        refuse_option("--data", harness.empty() ? "text, or items of RULER's tasks" : "text, or a folder of data sets",
                      "tasks of both kinds: evaluate them one after the other");
    const bool labelled = std::any_of(options.tasks.begin(), options.tasks.end(), evaluation::reads_labelled_items);
    std::size_t readers = text || !(ruler.empty() && harness.empty()) ? 1 : 0;
    for (const char* task : {"classify", "translation"})
        readers += std::count(options.tasks.begin(), options.tasks.end(), task) > 0 ? 1 : 0;
    readers += std::any_of(options.tasks.begin(), options.tasks.end(),
                           [](const std::string& task) { return evaluation::find_task(task).kind->asks_questions(); });
    if (labelled && !options.data.empty() && readers > 1)
        refuse_option("--data", "data of one kind of task",
                      "tasks of several kinds: evaluate them one after the other");
    if (!(ruler.empty() && harness.empty()) && options.data.size() > 1)
        refuse_option("--data", "one folder of items", std::to_string(options.data.size()));
    if (!harness.empty() && options.data.empty())
        refuse_option("--data", "a folder with the data sets of " + harness.front()->name + " and its like", "none");
    if (!options.dump.empty() && (ruler.empty() || !options.data.empty() || options.models.size() > 1))
        refuse_option("--dump", "RULER's tasks, made for one model",
                      ruler.empty()           ? "none of them"
                      : !options.data.empty() ? "items of --data"
                                              : "several models, whose tokenizers may differ");
    const auto needs = [&](const char* option, bool given, bool there, const char* what) {
        if (given && !there) refuse_option(option, what, "none");
    };
    constexpr const char* sets = "a task on a data set, such as arc_easy";
    needs("--shots", options.shots > 0, !harness.empty(), sets);
    needs("--limit", options.limit > 0, !harness.empty(), sets);
    needs("--baselines", options.baselines, !harness.empty(), sets);
    constexpr const char* items = "a task of items, such as arc_easy, niah_single_1 or classify";
    const bool has_items = !harness.empty() || !ruler.empty() || labelled;
    needs("--items", !options.items.empty(), has_items, items);
    needs("--prompts", !options.prompts.empty(), has_items, items);
    const auto asked = [&](const char* task) {
        return std::find(options.tasks.begin(), options.tasks.end(), task) != options.tasks.end();
    };
    const EvaluationOptions usual;
    needs("--beams", options.beams != usual.beams, asked("translation"), "the task translation");
    needs("--length-penalty", options.length_penalty_given, asked("translation"), "the task translation");
    needs("--batch", options.batch != usual.batch, asked("speed"), "the task speed");
    check_options("evaluate", options.given, option_kinds(options));
    for (const std::string& option : options.task_options) {
        const std::string task = option.substr(0, option.find('.'));
        const bool of_longbench =
            task == "longbench" &&
            std::any_of(harness.begin(), harness.end(), [](const auto* one) { return evaluation::is_longbench(*one); });
        if (!of_longbench && !asked(task.c_str()))
            refuse_option("--task-option", "one of the tasks asked for", escaped(option));
    }
}

bool asks_translations(const EvaluationOptions& options) {
    return std::find(options.tasks.begin(), options.tasks.end(), "translation") != options.tasks.end();
}

model::BeamOptions search_for(const EvaluationOptions& options, const checkpoint::Checkpoint& checkpoint) {
    model::BeamOptions beams;
    beams.settings = model::read_generation_settings(checkpoint);
    beams.width = options.beams > 0 ? options.beams : beams.settings.beams.value_or(1);
    beams.length_penalty = options.length_penalty;
    if (!options.length_penalty_given && beams.settings.describes_beams())
        model::use_beams_of_files(beams.settings, beams);
    beams.end_tokens = model::end_tokens(checkpoint);
    const auto most = options.lengths.empty() ? beams.settings.most_new(1) : std::nullopt;
    beams.tokens = most.value_or(std::numeric_limits<std::int64_t>::max());
    return beams;
}

void add_searches(const std::vector<model::BeamOptions>& searches, nlohmann::json& settings) {
    const auto add = [&](const char* key, const auto& value_of) {
        nlohmann::json values = nlohmann::json::array();
        for (const auto& search : searches) values.push_back(value_of(search));
        const bool same = std::equal(values.begin() + 1, values.end(), values.begin());
        settings[key] = same ? values[0] : values;
    };
    add("beams", [](const auto& beams) { return beams.width; });
    add("length_penalty", [](const auto& beams) { return beams.length_penalty; });
    add("length_penalty_of",
        [](const auto& beams) { return beams.plain_power ? "length^alpha" : "((5 + length) / 6)^alpha"; });
    add("early_stopping", [](const auto& beams) { return model::early_stopping_name(beams.early_stopping); });
}

void prepare_questions(const EvaluationOptions& options, const model::ModelConfig& config,
                       const Cancellation& cancellation, evaluation::Request& request) {
    for (const std::string& task : request.tasks) {
        if (!evaluation::find_task(task).kind->asks_questions()) continue;
        model::make_objective("spans", model::kSpanEnds)->check(config);
        request.said.tokenizer = request.labelled.tokenizer.tokenizer;
        for (const std::string& entry : options.data) {
            auto items = evaluation::read_question_items(entry, task, cancellation);
            if (std::any_of(request.questions.begin(), request.questions.end(),
                            [&](const auto& one) { return one.name == items.name; }))
                refuse_option("--data", "a name of its own for each file (NAME=FILE)", escaped(items.name) + " twice");
            request.questions.push_back(std::move(items));
        }
    }
}

bool is_ruler_read(const EvaluationOptions& options, const data::RulerTask& task) {
    if (options.data.empty()) return false;
    // A folder of data sets need not have RULER's; one that was named for them alone must.
    std::error_code ignored;
    return evaluation::harness_tasks_of(options.tasks).empty() ||
           fs::exists(evaluation::ruler_items_file(options.data.front(), task.name), ignored);
}

Hay read_hay(const EvaluationOptions& options) {
    const auto tasks = evaluation::ruler_tasks_of(options.tasks);
    const bool wanted = std::any_of(tasks.begin(), tasks.end(),
                                    [&](const auto* task) { return task->essays && !is_ruler_read(options, *task); });
    if (!wanted) {
        if (!options.haystack.empty())
            refuse_option("--haystack", "a task whose hay is essays", tasks.empty() ? "none of RULER's" : "others");
        return {};
    }
    const std::string name = options.haystack.empty() ? "kjv" : options.haystack;
    Hay hay;
    const auto files = evaluation::source_files(name, "--haystack");
    hay.essays = std::make_shared<const data::Essays>(data::read_essays(files, name, kHay));
    for (const auto& file : files) hay.files.push_back(file.path);
    return hay;
}

evaluation::HarnessTask with_rules(const EvaluationOptions& options, evaluation::HarnessTask task) {
    for (const std::string& option : options.task_options) {
        if (!option.starts_with(kLongBenchOption)) continue;
        if (option != "longbench.rules=thudm" && option != "longbench.rules=lm-eval")
            refuse_option("--task-option", "longbench.rules=lm-eval or longbench.rules=thudm", escaped(option));
        if (evaluation::is_longbench(task) && option == "longbench.rules=thudm")
            task = evaluation::with_thudm_rules(std::move(task));
    }
    return task;
}

DataSets read_data_sets(const EvaluationOptions& options, const evaluation::Request& request) {
    DataSets sets;
    const evaluation::ItemsOptions reading{options.shots, options.shots_rule == "first",
                                           options.seed_given ? options.seed : kShotsSeed, options.limit};
    sets.seed = reading.seed;
    for (const evaluation::HarnessTask* task : evaluation::harness_tasks_of(options.tasks)) {
        const auto given = request.generator_options.find(task->name);
        sets.tasks.push_back(std::make_unique<const evaluation::HarnessTask>(with_rules(
            options,
            given == request.generator_options.end() ? *task : evaluation::with_options(*task, given->second))));
        sets.items.push_back(std::make_shared<const evaluation::HarnessItems>(
            evaluation::read_items(options.data.front(), *sets.tasks.back(), reading, request.score.cancellation)));
    }
    return sets;
}

void prepare_answers(const EvaluationOptions& options, const Hay& hay, const DataSets& sets,
                     const checkpoint::Checkpoint& checkpoint, const model::ModelConfig& config,
                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer, evaluation::Request& request) {
    const auto ruler = evaluation::ruler_tasks_of(options.tasks);
    if (ruler.empty() && sets.items.empty()) return;
    for (const auto* task : ruler)
        if (request.generator_options.contains(task->name))
            refuse_option("--task-option", std::string("none of ") + task->name, "some");
    if (!sets.items.empty() && request.lengths.size() > 1)
        refuse_option("--length", "one of " + sets.tasks.front()->name + ": what the model may read at once",
                      std::to_string(request.lengths.size()));
    if (tokenizer || !sets.items.empty()) {
        request.harness.tokens = evaluation::harness_tokens(checkpoint, tokenizer,
                                                            request.lengths.size() == 1 ? request.lengths.front() : 0);
        // An encoder's input always has its special tokens.
        if (!config.encoder) request.said.prefix = request.harness.tokens.prefix;
    }
    const bool says = !ruler.empty() || std::any_of(sets.items.begin(), sets.items.end(), [](const auto& items) {
        return items->task->kind == evaluation::HarnessKind::said;
    });
    if (says) request.said.settings = model::read_generation_settings(checkpoint);
    if (const auto beams = request.said.settings.beams.value_or(1); beams > 1)
        std::fprintf(stderr, "headscope: %s: answers are greedy; num_beams = %lld applies to translation alone\n",
                     shown(checkpoint.path()).c_str(), static_cast<long long>(beams));
    request.said.end_tokens = model::end_tokens(checkpoint);
    if (tokenizer)
        if (const auto last = analysis::ending_token(checkpoint, *tokenizer)) request.said.end_tokens.push_back(*last);
    request.said.tokenizer = std::move(tokenizer);
    request.said.essays = hay.essays;
    request.harness.tasks = sets.items;
    request.harness.shots = options.shots;
    request.harness.resamples = options.bootstrap;
    request.harness.baselines = options.baselines;
    if (!sets.items.empty() && config.causal)
        request.harness.ids = evaluation::encode_items(
            request.harness, request.said, evaluation::most_read(request, config), request.score.cancellation);
    std::optional<std::int64_t> length;
    if (request.lengths.size() == 1) length = request.lengths.front();
    for (const auto* task : ruler) {
        if (!is_ruler_read(options, *task)) continue;
        auto items = evaluation::read_ruler_items(options.data.front(), *task, length);
        if (!request.lengths.empty())
            std::erase_if(items, [&](const evaluation::AskedItem& item) {
                return std::find(request.lengths.begin(), request.lengths.end(), item.max_length) ==
                       request.lengths.end();
            });
        if (items.empty())
            refuse_option("--length", std::string("a length of the items of ") + task->name, "none of them");
        request.said.files[task->name] = std::move(items);
    }
}

ItemDump::ItemDump(const fs::path& folder, const std::vector<const data::RulerTask*>& tasks,
                   const std::vector<fs::path>& inputs) {
    make_folder(folder);
    for (const auto* task : tasks) {
        const fs::path file = evaluation::ruler_items_file(folder, task->name);
        make_folder(file.parent_path());
        files_[task->name] = std::make_unique<OutputFile>(file, inputs, "items");
    }
}

ItemDump::~ItemDump() {
    files_.clear();
    std::error_code ignored;
    if (!published_)
        for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
}

void ItemDump::add(const std::string& task, const data::RulerItem& item) {
    files_.at(task)->append(evaluation::ruler_item_line(item));
}

void ItemDump::publish() {
    for (auto& [task, file] : files_) file->publish();
    published_ = true;
}

void ItemDump::make_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::create_directory(folder, error)) made_.push_back(folder);
    if (error) throw Error(ErrorCode::io, shown(folder), "expected to make a folder", "found " + error.message());
}

}  // namespace headscope::app
