// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/evaluation_output.h"
#include "app/commands/layer_list.h"
#include "app/commands/loading.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/os_error.h"
#include "core/base/output_file.h"
#include "core/checkpoint/adapter.h"
#include "core/evaluation/describe.h"
#include "core/evaluation/sources.h"
#include "core/evaluation/tasks.h"
#include "core/model/build.h"
#include "core/model/generate.h"
#include "core/model/model.h"
#include "core/store/evaluation_file.h"

namespace headscope::app {
namespace evaluate_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Options {
    std::vector<std::string> models, tasks, data, task_options;
    std::string adapter, output, lengths, skip, prefix = "auto", dtype = "float32", kernels = "auto", haystack, dump;
    std::int64_t stride = 0, tokens = 0, sequences = 0, batch_tokens = 4096;
    std::uint64_t seed = 1;
    int threads = 0;
    bool json = false, beyond_positions = false;
};

/// "mqar.pairs=4" for each option of a generator's task.
void set_task_option(evaluation::Request& request, const std::string& text) {
    const std::size_t dot = text.find('.'), equals = text.find('=');
    double value = 0;
    const char* const end = text.data() + text.size();
    const bool shaped = dot != std::string::npos && equals != std::string::npos && dot > 0 && dot + 1 < equals;
    if (!shaped || std::from_chars(text.data() + equals + 1, end, value).ptr != end || equals + 1 == text.size())
        throw UsageError("--task-option: something like mqar.pairs=4 is expected; found " + escaped(text));
    request.generator_options[text.substr(0, dot)][text.substr(dot + 1, equals - dot - 1)] = value;
}

std::optional<std::int64_t> prefix_of(const Options& options, const checkpoint::Checkpoint& checkpoint,
                                      const tokenizer::Tokenizer* tokenizer) {
    if (options.prefix == "none") return std::nullopt;
    if (options.prefix != "auto") {
        std::int64_t id = -1;
        const char* const end = options.prefix.data() + options.prefix.size();
        if (std::from_chars(options.prefix.data(), end, id).ptr != end || id < 0)
            throw UsageError("--prefix: auto, none or a token's id is expected; found " + escaped(options.prefix));
        return id;
    }
    if (tokenizer)
        if (const auto first = analysis::beginning_token(checkpoint, *tokenizer)) return *first;
    // As lm-eval has it: the tokenizer's own comes first.
    if (tokenizer)
        if (const auto last = analysis::ending_token(checkpoint, *tokenizer)) return *last;
    const auto ends = model::end_tokens(checkpoint);
    return ends.empty() ? std::nullopt : std::optional(ends.front());
}

/// Everything about one model that is known before its weights are read.
struct Prepared {
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint;
    evaluation::Request request;
    std::unique_ptr<evaluation::Documents> documents;
    std::optional<training::JobFile> job;  ///< what trained it, where that is known
};

bool wants_text(const std::vector<std::string>& tasks) {
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const std::string& task) { return evaluation::find_task(task).on_text(); });
}

/// More text than the longest context needs; what is shorter is read again from its begin.
constexpr std::size_t kHay = std::size_t{64} << 20U;

/// What the hay of RULER's tasks is made of.
struct Hay {
    std::shared_ptr<const data::Essays> essays;  ///< null: no task needs any
    std::vector<fs::path> files;
};

Hay hay_of(const Options& options) {
    const auto tasks = evaluation::ruler_tasks_of(options.tasks);
    const bool wanted =
        options.data.empty() && std::any_of(tasks.begin(), tasks.end(), [](const auto* task) { return task->essays; });
    if (!wanted) {
        if (!options.haystack.empty())
            throw Error(ErrorCode::usage, "--haystack", "expected a task whose hay is essays",
                        tasks.empty() ? "found none of RULER's" : "found others");
        return {};
    }
    const std::string name = options.haystack.empty() ? "kjv" : options.haystack;
    Hay hay;
    const auto files = evaluation::source_files(name, "--haystack");
    hay.essays = std::make_shared<const data::Essays>(data::read_essays(files, name, kHay));
    for (const auto& file : files) hay.files.push_back(file.path);
    return hay;
}

/// Items that are asked, for another harness: FOLDER/TASK/test.jsonl. Nothing stays of one that is not published.
class ItemDump {
public:
    ItemDump(const fs::path& folder, const std::vector<const data::RulerTask*>& tasks,
             const std::vector<fs::path>& inputs) {
        make_folder(folder);
        for (const auto* task : tasks) {
            const fs::path file = evaluation::ruler_items_file(folder, task->name);
            make_folder(file.parent_path());
            files_[task->name] = std::make_unique<OutputFile>(file, inputs, "items");
        }
    }
    ~ItemDump() {
        files_.clear();
        std::error_code ignored;
        if (!published_)
            for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);
    }
    ItemDump(const ItemDump&) = delete;
    ItemDump& operator=(const ItemDump&) = delete;

    void add(const std::string& task, const data::RulerItem& item) {
        files_.at(task)->append(evaluation::ruler_item_line(item));
    }
    void publish() {
        for (auto& [task, file] : files_) file->publish();
        published_ = true;
    }

private:
    void make_folder(const fs::path& folder) {
        std::error_code error;
        if (fs::create_directory(folder, error)) made_.push_back(folder);
        if (error) throw Error(ErrorCode::io, shown(folder), "expected to make a folder", "found " + error.message());
    }

    std::map<std::string, std::unique_ptr<OutputFile>> files_;
    std::vector<fs::path> made_;
    bool published_ = false;
};

/// What RULER's tasks need of a model's folder, and their items where files hold them.
void prepare_said(const Options& options, const Hay& hay, const checkpoint::Checkpoint& checkpoint,
                  std::shared_ptr<const tokenizer::Tokenizer> tokenizer, evaluation::Request& request) {
    const auto tasks = evaluation::ruler_tasks_of(options.tasks);
    if (tasks.empty()) return;
    for (const auto* task : tasks)
        if (request.generator_options.contains(task->name))
            throw Error(ErrorCode::usage, "--task-option", std::string("expected none of ") + task->name, "found some");
    request.said.end_tokens = model::end_tokens(checkpoint);
    if (tokenizer)
        if (const auto last = analysis::ending_token(checkpoint, *tokenizer)) request.said.end_tokens.push_back(*last);
    request.said.tokenizer = std::move(tokenizer);
    request.said.prefix = request.prefix;
    request.said.essays = hay.essays;
    if (options.data.empty()) return;
    if (options.data.size() > 1)
        throw Error(ErrorCode::usage, "--data", "expected one folder of items",
                    "found " + std::to_string(options.data.size()));
    std::optional<std::int64_t> length;
    if (request.lengths.size() == 1) length = request.lengths.front();
    for (const auto* task : tasks) {
        auto items = evaluation::read_ruler_items(options.data.front(), *task, length);
        if (!request.lengths.empty())
            std::erase_if(items, [&](const evaluation::AskedItem& item) {
                return std::find(request.lengths.begin(), request.lengths.end(), item.max_length) ==
                       request.lengths.end();
            });
        if (items.empty())
            throw Error(ErrorCode::usage, "--length", std::string("expected a length of the items of ") + task->name,
                        "found none of them");
        request.said.files[task->name] = std::move(items);
    }
}

Prepared prepare(const Options& options, const Hay& hay, const std::string& path, Progress& progress,
                 const Cancellation& cancellation) {
    Prepared prepared;
    const fs::path place = evaluation::checkpoint_in(path);
    prepared.checkpoint = checkpoint::Checkpoint::open(place, options.adapter);
    const auto inspection = model::inspect(*prepared.checkpoint);
    evaluation::Request& request = prepared.request;
    request.tasks = options.tasks;
    if (!options.lengths.empty()) request.lengths = parse_lengths("--length", options.lengths);
    request.stride = options.stride;
    request.most_tokens = options.tokens;
    if (options.sequences > 0) request.sequences = request.items = options.sequences;
    request.seed = options.seed;
    request.score.beyond_positions = options.beyond_positions;
    request.score.batch_tokens = options.batch_tokens;
    request.score.cancellation = &cancellation;
    if (options.skip == "others") {
        request.score.skip_layers = evaluation::other_layers(inspection.config.mixers);
    } else {
        request.score.skip_layers = parse_layers("--skip", options.skip);
        check_layers("--skip", request.score.skip_layers, inspection.config.all_layers());
    }
    const auto tokenizer = tokenizer_of(*prepared.checkpoint);
    request.prefix = prefix_of(options, *prepared.checkpoint, tokenizer.get());

    const auto& job = prepared.job = evaluation::job_of(place);
    if (job) {
        request.training_length = evaluation::training_length(&*job, inspection.config.max_positions);
        if (job->data.generator) {
            const auto& generator = *job->data.generator;
            request.trained_on = generator.name;
            request.generator_options[generator.name] = generator.options;
            request.generator_lengths[generator.name] = job->data.sequence_length;
        }
    }
    for (const std::string& option : options.task_options) set_task_option(request, option);
    prepare_said(options, hay, *prepared.checkpoint, tokenizer, request);
    if (wants_text(options.tasks)) {
        if (!options.data.empty()) {
            if (!tokenizer)
                throw Error(ErrorCode::usage, "--data", "expected a checkpoint with a tokenizer", "found none");
            prepared.documents = evaluation::documents_of(options.data, tokenizer);
        } else if (job) {
            prepared.documents = evaluation::held_out_part(*job, path, progress, cancellation);
        }
    }
    evaluation::check_request(request, inspection.config, prepared.documents != nullptr);
    return prepared;
}

std::string significant(double value) {
    if (!std::isfinite(value)) return "";
    char text[40];
    std::snprintf(text, sizeof text, "%.5g", value);
    return text;
}

void print_table(const store::Evaluation& evaluation) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& result : evaluation.results) {
        const auto& model = evaluation.models[static_cast<std::size_t>(result.model)];
        rows.push_back({escaped(model.name) + (model.skipped.empty() ? "" : " without " + model.skipped), result.task,
                        result.metric, std::to_string(result.length), significant(result.value),
                        significant(result.error), std::to_string(result.count)});
    }
    print(format_table({"model", "task", "metric", "length", "value", "error", "count"}, rows));
}

void run(const Options& options, const Cancellation& cancellation) {
    if (!options.output.empty()) check_evaluation_name(options.output);
    if (!options.adapter.empty() && options.models.size() > 1)
        throw UsageError("--adapter: one model is expected beside it; found " + std::to_string(options.models.size()));
    for (const auto& task : options.tasks) evaluation::find_task(task);
    const auto said = evaluation::ruler_tasks_of(options.tasks);
    if (!said.empty() && !options.data.empty() && wants_text(options.tasks))
        throw Error(ErrorCode::usage, "--data", "expected text, or items of RULER's tasks",
                    "found tasks of both kinds: evaluate them one after the other");
    if (!options.dump.empty() && (said.empty() || !options.data.empty() || options.models.size() > 1))
        throw Error(ErrorCode::usage, "--dump", "expected RULER's tasks, made for one model",
                    said.empty()            ? "found none of them"
                    : !options.data.empty() ? "found items of --data"
                                            : "found several models, whose tokenizers may differ");
    const Hay hay = hay_of(options);
    configure_compute(options.threads, options.kernels, "cpu");
    ConsoleProgress progress;
    std::vector<Prepared> models;
    std::vector<fs::path> inputs = hay.files;
    if (!said.empty() && !options.data.empty())
        for (const auto* task : said) inputs.push_back(evaluation::ruler_items_file(options.data.front(), task->name));
    for (const auto& path : options.models) {
        models.push_back(prepare(options, hay, path, progress, cancellation));
        const auto& files = models.back().checkpoint->files();
        inputs.insert(inputs.end(), files.begin(), files.end());
        if (const auto* adapter = models.back().checkpoint->adapter()) inputs.push_back(adapter->file().path());
        if (!models.back().documents) continue;
        const auto read = models.back().documents->files();
        inputs.insert(inputs.end(), read.begin(), read.end());
    }
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);

    store::Evaluation evaluation;
    json settings = {{"tasks", options.tasks},
                     {"data", models.front().documents ? models.front().documents->name() : ""},
                     {"lengths", options.lengths},
                     {"stride", options.stride},
                     {"prefix", options.prefix},
                     {"tokens", options.tokens},
                     {"sequences", models.front().request.sequences},
                     {"seed", options.seed},
                     {"task_options", options.task_options},
                     {"skip", options.skip},
                     {"dtype", options.dtype},
                     {"beyond_positions", options.beyond_positions}};
    if (!options.adapter.empty()) settings["adapter"] = options.adapter;
    if (!said.empty()) settings["items"] = models.front().request.items;
    if (!said.empty() && !options.data.empty()) settings["data"] = options.data.front();
    if (hay.essays) settings["haystack"] = hay.essays->name;
    std::optional<ItemDump> dump;
    if (!options.dump.empty()) {
        dump.emplace(options.dump, said, inputs);
        models.front().request.said.on_item = [&dump](const std::string& task, const data::RulerItem& item) {
            dump->add(task, item);
        };
    }
    evaluation.settings_json = settings.dump(-1, ' ', false, json::error_handler_t::replace);  // paths are bytes
    const auto precision = options.dtype == "bfloat16" ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    for (Prepared& one : models) {
        const auto model = model::Model::build(*one.checkpoint, precision, &progress, &cancellation);
        const auto index = static_cast<std::int64_t>(evaluation.models.size());
        evaluation.models.push_back(evaluation::describe(*one.checkpoint, *model, one.request.score.skip_layers,
                                                         one.job ? &*one.job : nullptr, cancellation));
        evaluation.models.back().name = evaluation::evaluated_name(*one.checkpoint);
        const auto rows = evaluation::run_tasks(*model, one.request, one.documents.get(), index, progress);
        evaluation.results.insert(evaluation.results.end(), rows.begin(), rows.end());
    }
    finish_progress_line();
    if (dump) dump->publish();
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_table(evaluation);
}

}  // namespace
}  // namespace evaluate_command

void add_evaluate(CLI::App& app, Context& context) {
    using namespace evaluate_command;
    auto* command = app.add_subcommand("evaluate", "Perplexity, accuracy and recall tasks of trained models");
    auto options = std::make_shared<Options>();
    add_option(*command, "model", options->models, "Checkpoints, or folders of runs (their best snapshot)")->required();
    add_option(*command, "--adapter", options->adapter, "A folder with a LoRA adapter (PEFT) to merge into the model");
    add_option(*command, "--task", options->tasks, "What to measure: headscope list tasks")->required()->delimiter(',');
    add_option(
        *command, "--data", options->data,
        "Text to score: files, folders, patterns or a corpus; else what the run held out. Of RULER's tasks: a folder "
        "with their items, TASK/test.jsonl; else they are made");
    add_option(*command, "--length", options->lengths, "Context lengths in tokens: 128,256,512");
    add_option(*command, "--stride", options->stride,
               "Tokens that a window predicts after the first one; 0: disjoint windows")
        ->check(CLI::NonNegativeNumber);
    add_option(*command, "--prefix", options->prefix,
               "The token before a text: auto (its beginning or end token), none, or an id");
    add_option(*command, "--tokens", options->tokens, "Score the first N tokens only")->check(CLI::NonNegativeNumber);
    add_option(*command, "--sequences", options->sequences,
               "Sequences of a generated task (256), items of one of RULER's at each length (500)")
        ->check(in_range(1, 1 << 24));
    add_option(*command, "--seed", options->seed, "Of generated tasks and items");
    add_option(*command, "--task-option", options->task_options,
               "Option of a task: mqar.pairs=4, position_perplexity.bucket=2048");
    add_option(*command, "--haystack", options->haystack,
               "Text that hides RULER's needles: a file, folder, pattern or corpus; kjv if nothing is said");
    add_option(*command, "--dump", options->dump, "A folder for RULER's items as they were asked, TASK/test.jsonl");
    add_option(*command, "--skip", options->skip,
               "Whole blocks left out: 0,2,5-8, or others: all that are not standard");
    add_option(*command, "-o,--output", options->output, "Results: .evaluation.h5, .csv or .json");
    add_option(*command, "--dtype", options->dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--batch-tokens", options->batch_tokens, "Tokens of one forward pass")
        ->check(in_range(1, 1 << 24));
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_option(*command, "--kernels", options->kernels, "auto, reference or one of headscope list kernels");
    add_flag(*command, "--beyond-positions", options->beyond_positions, "Read past the trained positions");
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback(
        [&context, options] { context.command = [&context, options] { run(*options, context.cancellation); }; });
}

}  // namespace headscope::app
