// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/evaluate/averaged_run.h"
#include "app/commands/evaluate/evaluation_inputs.h"
#include "app/commands/evaluate/evaluation_items.h"
#include "app/commands/evaluate/evaluation_options.h"
#include "app/commands/evaluate/evaluation_output.h"
#include "app/commands/evaluate/predictions.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "core/analysis/input.h"
#include "core/base/class_names.h"
#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/json/json.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/fingerprint.h"
#include "core/checkpoint/gguf/tokenizer_documents.h"
#include "core/data/batch/item_reader.h"
#include "core/data/catalog.h"
#include "core/data/objectives/list.h"
#include "core/evaluation/describe.h"
#include "core/evaluation/expected_memory.h"
#include "core/evaluation/sources.h"
#include "core/evaluation/tasks.h"
#include "core/model/generate/generate.h"
#include "core/model/load/build.h"
#include "core/model/load/model_device.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/model/trainable.h"
#include "core/store/evaluation/evaluation_file.h"
#include "core/store/evaluation/evaluation_texts.h"
#include "core/training/trainer/job_model.h"

namespace headscope::app {
namespace evaluate_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Options = EvaluationOptions;

/// "mqar.pairs=4" for each option of a generator's task.
void set_task_option(evaluation::Request& request, const std::string& text) {
    if (text.starts_with(kLongBenchOption)) return;  // with_rules() reads it
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
    std::unique_ptr<const AveragedRun> averaged;  ///< of --average; outlives its checkpoint
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint;
    evaluation::Request request;
    std::vector<evaluation::NamedText> texts;
    std::vector<std::string> classes;      ///< of classify: the head's, by name
    std::optional<training::JobFile> job;  ///< what trained it, where that is known
    model::Residence residence = model::Residence::float32;
};

bool wants_text(const std::vector<std::string>& tasks) {
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const std::string& task) { return evaluation::find_task(task).kind->on_text(); });
}

/// Data of the labelled tasks: files of --data, or what the generator makes that the model was trained on.
void prepare_labelled(const Options& options, const checkpoint::Checkpoint& checkpoint,
                      const model::ModelConfig& config, const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer,
                      const std::optional<training::JobFile>& job, const Cancellation& cancellation,
                      evaluation::Request& request) {
    request.labelled.tokenizer.tokenizer = tokenizer;
    for (const char* name : {"tokenizer_config.json", "tokenizer.json"})
        if (const auto path = checkpoint.side_file(name))
            request.labelled.tokenizer.files.push_back({name, analysis::read_text_file(*path, &cancellation)});
    if (const auto own = checkpoint.own_tokenizer()) {
        request.labelled.tokenizer.files.push_back({"tokenizer_config.json", own->settings.dump()});
        request.labelled.tokenizer.files.push_back({"tokenizer.json", own->tokenizer.dump()});
    }
    if (asks_translations(options)) request.labelled.beams = search_for(options, checkpoint);
    for (const std::string& name : request.tasks) {
        auto* const list = evaluation::find_task(name).kind->items(request.labelled);
        if (list == nullptr) continue;
        evaluation::check_head(name, config);
        request.said.tokenizer = tokenizer;
        std::vector<evaluation::LabelledItems>& all = *list;
        data::ObjectiveSettings objective;
        objective.kind = name;
        objective.classes = config.classes;
        if (job) {
            objective.source = job->data.objective.source;
            objective.target = job->data.objective.target;
        }
        for (const std::string& entry : options.data) {
            auto items = evaluation::labelled_file(entry, name);
            if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == items.name; }))
                throw Error(ErrorCode::usage, "--data", "expected a name of its own for each file (NAME=FILE)",
                            "found " + escaped(items.name) + " twice");
            all.push_back(std::move(items));
            const InputFile file(all.back().file, "file of items");
            const CancellationScope scope(cancellation);
            all.back().sha256 = checkpoint::cached_sha256(file, cancellation);
            data::read_items(
                file, data::kind_of_objects(data::source_kind(all.back().file)), objective,
                [&](const data::TextItem& item) { all.back().items.push_back(item); }, [](std::uint64_t) {});
            if (all.back().items.empty())
                throw Error(ErrorCode::usage, shown(all.back().file), "expected at least one item", "found none");
        }
        if (!all.empty() || !job || !job->data.generator) continue;
        const auto generator = data::make_generator(*job->data.generator, job->data.sequence_length);
        if (!generator.item || (generator.classes > 0) != data::kind_of(objective).labels()) continue;
        all.push_back({name, {}, {}});
        for (std::int64_t i = 0; i < request.sequences; ++i)
            all.back().items.push_back(generator.item(data::Split::validation, request.seed, i));
    }
}

checkpoint::LoadAs precision_of(const Options& options) {
    return options.dtype == "bfloat16" ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
}

/// The folder of the output, or that of temporary files (TMPDIR); empty: there is none.
fs::path waiting_folder(const std::string& output) {
    std::error_code failed;
    if (output.empty()) return fs::temp_directory_path(failed);
    const fs::path folder = fs::path(output).parent_path();
    return folder.empty() ? fs::path(".") : folder;
}

Prepared prepare(const Options& options, const Hay& hay, const DataSets& sets, const std::string& path,
                 Progress& progress, const Cancellation& cancellation) {
    Prepared prepared;
    if (options.average > 0)
        prepared.averaged = std::make_unique<AveragedRun>(path, options.average, progress, cancellation);
    // Job and held-out text are the run's.
    const fs::path place = prepared.averaged ? prepared.averaged->newest() : evaluation::checkpoint_in(path);
    prepared.checkpoint =
        model::open_checkpoint(prepared.averaged ? prepared.averaged->checkpoint() : place, options.adapter);
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
        if (job->data.fixed_token)
            request.score.fixed_token =
                evaluation::trained_token(*job->data.fixed_token, place, inspection.config.vocabulary);
    }
    for (const std::string& option : options.task_options) set_task_option(request, option);
    prepare_answers(options, hay, sets, *prepared.checkpoint, inspection.config, tokenizer, request);
    prepare_labelled(options, *prepared.checkpoint, inspection.config, tokenizer, job, cancellation, request);
    prepare_questions(options, inspection.config, cancellation, request);
    if (!request.labelled.classes.empty() && inspection.config.classes > 1)
        prepared.classes = all_class_names(inspection.config.original_json, inspection.config.classes);
    request.speed.batch = options.batch;
    request.speed.seed = options.seed;
    request.speed.open = [checkpoint = prepared.checkpoint, &cancellation] {
        return model::on_model_device(model::Trainable::open(*checkpoint, at::kFloat, {}, 0, nullptr, &cancellation));
    };
    if (wants_text(options.tasks)) {
        if (!options.data.empty()) {
            if (!tokenizer)
                throw Error(ErrorCode::usage, "--data", "expected a checkpoint with a tokenizer", "found none");
            prepared.texts = evaluation::texts_of(options.data, tokenizer, cancellation);
        } else if (job) {
            const auto words = tokenizer && tokenizer->word_hash()
                                   ? training::hashed_words(*job, place, {job->base, path}, progress, cancellation)
                                   : std::nullopt;
            if (auto text = evaluation::held_out_part(*job, path, progress, cancellation, words ? &*words : nullptr))
                prepared.texts.push_back(std::move(*text));
        }
    }
    evaluation::check_request(request, inspection.config, !prepared.texts.empty());
    const model::WeightChoice choice{.precision = precision_of(options),
                                     .residence = model::residence(options.weights)};
    if (std::find(options.given.begin(), options.given.end(), "--batch-tokens") == options.given.end())
        request.score.batch_tokens = evaluation::fitting_batch_tokens(request, inspection, choice);
    prepared.residence = evaluation::expect_memory(request, inspection, choice);
    if (prepared.residence == model::Residence::stream) {
        request.score.waiting = {evaluation::fitting_waiting_bytes(request, inspection, choice.precision),
                                 waiting_folder(options.output)};
    }
    return prepared;
}

/// The residence of the weights: a name, or one for each model where they differ.
json residences_of(const std::vector<Prepared>& models) {
    json names = json::array();
    for (const Prepared& one : models) names.emplace_back(model::name(one.residence));
    const json first = names.front();
    const bool same = std::all_of(names.begin(), names.end(), [&](const json& name) { return name == first; });
    return same ? first : names;
}

/// The settings that the results record.
json settings_of(const Options& options, const std::vector<Prepared>& models, const Hay& hay, const DataSets& sets) {
    const Prepared& first = models.front();
    std::string data;
    for (const evaluation::NamedText& text : first.texts) data += (data.empty() ? "" : ", ") + text.documents->name();
    json settings = {{"tasks", options.tasks},
                     {"data", data},
                     {"lengths", options.lengths},
                     {"stride", options.stride},
                     {"prefix", options.prefix},
                     {"tokens", options.tokens},
                     {"sequences", first.request.sequences},
                     {"seed", options.seed},
                     {"task_options", options.task_options},
                     {"skip", options.skip},
                     {"dtype", options.dtype},
                     {"weights", residences_of(models)},
                     {"weights_requested", options.weights},
                     {"device_requested", options.device},
                     {"kernels_requested", options.kernels},
                     {"beyond_positions", options.beyond_positions}};
    model::store_device(settings, options.dtype);
    if (options.average > 0) settings["average"] = options.average;
    if (!options.adapter.empty()) settings["adapter"] = options.adapter;
    for (const Prepared& one : models)
        if (const auto& token = one.request.score.fixed_token)
            settings["fixed_tokens"].push_back(
                {{"model", one.checkpoint->path().string()}, {"position", token->position}, {"id", token->id.value()}});
    if (std::any_of(options.tasks.begin(), options.tasks.end(), evaluation::reads_labelled_items))
        settings["data"] = options.data;
    for (std::size_t m = 0; m < models.size(); ++m)
        if (!models[m].classes.empty()) settings["class_names"][std::to_string(m)] = models[m].classes;
    if (asks_translations(options)) {
        std::vector<model::BeamOptions> searches;
        for (const Prepared& one : models) searches.push_back(one.request.labelled.beams);
        add_searches(searches, settings);
    }
    if (std::find(options.tasks.begin(), options.tasks.end(), "speed") != options.tasks.end()) {
        settings["batch"] = options.batch;
        settings["threads"] = compute_threads();
    }
    const auto ruler = evaluation::ruler_tasks_of(options.tasks);
    if (!ruler.empty()) settings["items"] = first.request.items;
    if (!options.data.empty() && !(ruler.empty() && sets.items.empty())) settings["data"] = options.data.front();
    if (hay.essays) settings["haystack"] = hay.essays->name;
    if (sets.items.empty()) return settings;
    settings["shots"] = options.shots;
    settings["shots_rule"] = options.shots_rule;
    settings["shots_seed"] = sets.seed;
    settings["limit"] = options.limit;
    settings["bootstrap"] = options.bootstrap;
    for (const auto& items : sets.items)
        for (const auto& file : items->files)
            settings["files"].push_back(
                {{"task", items->task->name}, {"path", file.path.string()}, {"sha256", file.sha256}});
    return settings;
}

/// Files that no output may replace.
std::vector<fs::path> inputs_of(const Options& options, const std::vector<Prepared>& models, const Hay& hay,
                                const DataSets& sets) {
    std::vector<fs::path> inputs = hay.files;
    for (const auto* task : evaluation::ruler_tasks_of(options.tasks))
        if (is_ruler_read(options, *task))
            inputs.push_back(evaluation::ruler_items_file(options.data.front(), task->name));
    for (const auto& items : sets.items)
        for (const auto& file : items->files) inputs.push_back(file.path);
    for (const Prepared& one : models) {
        for (const auto* all : {&one.request.labelled.classes, &one.request.labelled.translations})
            for (const auto& items : *all)
                if (!items.file.empty()) inputs.push_back(items.file);
        for (const auto& items : one.request.questions) inputs.push_back(items.file);
        const std::vector<fs::path> files = files_of(*one.checkpoint);
        inputs.insert(inputs.end(), files.begin(), files.end());
        for (const evaluation::NamedText& text : one.texts) {
            const auto read = text.documents->files();
            inputs.insert(inputs.end(), read.begin(), read.end());
        }
    }
    return inputs;
}

void run(Options options, const Cancellation& cancellation) {
    if (!options.output.empty()) check_evaluation_name(options.output);
    if (!options.predictions.empty()) return evaluate_predictions(options, cancellation);
    if (options.models.empty()) throw UsageError("model: a checkpoint or a run is expected; found none");
    if (!options.adapter.empty() && options.models.size() > 1)
        throw UsageError("--adapter needs one model; found " + std::to_string(options.models.size()));
    options.tasks = evaluation::expanded_tasks(options.tasks);
    check_evaluation_options(options);
    const Hay hay = read_hay(options);
    configure_compute(options.threads, options.kernels, options.device);
    ConsoleProgress progress;
    evaluation::Request common;
    common.score.cancellation = &cancellation;
    for (const std::string& option : options.task_options) set_task_option(common, option);
    const DataSets sets = read_data_sets(options, common);
    std::vector<Prepared> models;
    for (const auto& path : options.models) models.push_back(prepare(options, hay, sets, path, progress, cancellation));
    const std::vector<fs::path> inputs = inputs_of(options, models, hay, sets);
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);

    store::Evaluation evaluation;
    evaluation.settings_json = settings_of(options, models, hay, sets)
                                   .dump(-1, ' ', false, json::error_handler_t::replace);  // paths are bytes
    ItemLines lines(options.items, options.prompts, inputs);
    const bool keep_items = options.output.ends_with(".h5");
    std::optional<ItemDump> dump;
    if (!options.dump.empty()) {
        dump.emplace(options.dump, evaluation::ruler_tasks_of(options.tasks), inputs);
        models.front().request.said.on_item = [&dump](const std::string& task, const data::RulerItem& item) {
            dump->add(task, item);
        };
    }
    for (Prepared& one : models) {
        const auto model =
            model::Model::build(*one.checkpoint, precision_of(options), &progress, &cancellation, one.residence);
        const auto index = static_cast<std::int64_t>(evaluation.models.size());
        evaluation.models.push_back(evaluation::describe(*one.checkpoint, *model, one.request.score.skip_layers,
                                                         one.job ? &*one.job : nullptr, cancellation));
        evaluation.models.back().name = evaluation::evaluated_name(*one.checkpoint);
        if (one.averaged) {
            const auto newest = model::open_checkpoint(one.averaged->newest(), "");
            evaluation.models.back().path = one.averaged->newest().string();
            evaluation.models.back().name =
                evaluation::evaluated_name(*newest) + ", mean of " + std::to_string(options.average);
        }
        if (!options.variant.empty()) evaluation.models.back().variant = store::short_word(options.variant);
        one.request.on_answer = [&](const evaluation::AnsweredItem& answered) {
            lines.add(answered, index);
            if (keep_items)
                evaluation.items.push_back(
                    evaluation::evaluated_item(answered, index, one.request.said.tokenizer->of_target()));
        };
        const auto rows = evaluation::run_tasks(*model, one.request, one.texts, index, progress);
        evaluation.results.insert(evaluation.results.end(), rows.begin(), rows.end());
        one.request.harness = {};  // as many ids as the data sets have
    }
    finish_progress_line();
    if (dump) dump->publish();
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    lines.publish();
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_evaluation(evaluation);
}

}  // namespace
}  // namespace evaluate_command

void add_evaluate(CLI::App& app, Context& context) {
    using namespace evaluate_command;
    auto* command = app.add_subcommand("evaluate", "Perplexity, accuracy and recall tasks of trained models");
    auto options = std::make_shared<Options>();
    add_evaluation_options(*command, *options);
    command->callback([&context, options, command] {
        options->given = given_options(*command);
        options->seed_given = command->count("--seed") > 0;
        options->length_penalty_given = command->count("--length-penalty") > 0;
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
