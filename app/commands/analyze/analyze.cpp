// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <type_traits>
#include <variant>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "app/resources.h"
#include "core/analysis/estimate.h"
#include "core/analysis/job_request.h"
#include "core/analysis/rate_book.h"
#include "core/analysis/summary.h"
#include "core/ask/edits/intervention_file.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/text/text.h"
#include "core/checkpoint/fingerprint.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/model/towers/check_batch.h"
#include "core/store/analysis/analysis_file.h"
#include "kernels/backend.h"

namespace headscope::app {
namespace analyze_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Options {
    std::vector<std::string> models;
    std::string adapter, output;
    bool json = false;
    analysis::AnalysisJob job;
};

/// With several models each gets a file of its own, NAME.MODEL.headscope.h5; models of one name are numbered.
std::vector<fs::path> outputs_for(const Options& options, const std::vector<std::string>& model_names) {
    const fs::path output = options.output;
    if (model_names.size() == 1) return {output};
    const std::string ending = ".headscope.h5";
    std::string name = output.filename().string();
    if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
        name.resize(name.size() - ending.size());
    std::vector<fs::path> outputs;
    for (const auto& model : model_names) {
        fs::path candidate = output.parent_path() / (name + "." + model + ending);
        for (int number = 2; std::find(outputs.begin(), outputs.end(), candidate) != outputs.end(); ++number)
            candidate = output.parent_path() / (name + "." + model + "-" + std::to_string(number) + ending);
        outputs.push_back(candidate);
    }
    return outputs;
}

/// Length of the decoder's input of an encoder-decoder; empty for other models.
std::string target_note(const analysis::AnalysisJob& job, const analysis::AnalysisRequest& request) {
    if (request.targets.empty()) return "";
    if (job.targets.empty() && job.target_tokens.empty()) return "no --target: the decoder read its start token alone";
    std::size_t tokens = 0;
    for (const auto& target : request.targets) tokens += target.ids.size();
    return "the decoder read " + std::to_string(tokens) + " tokens, the start token first in each sequence";
}

struct Done {
    fs::path output;
    std::string model;
    analysis::Summary summary;
    json settings;
    std::size_t sequences = 0, tokens = 0;
    std::string note, target = {};
    std::vector<std::string> problems = {};
    double seconds = 0;  ///< of the run, without loading
};

/// The checkpoint's tensors that the model does not use, in a line; empty for none.
std::string loading_note(const model::LoadReport& report) {
    if (report.left_over.empty()) return "";
    std::string text =
        std::to_string(report.left_over.size()) + " tensors left over: " + list_text(report.left_over, 3);
    for (const auto& note : report.notes) text += "; " + escaped(note);
    return text;
}

/// All files that a run reads: no output may replace one.
std::vector<fs::path> files_read(const analysis::AnalysisJob& job, const analysis::Input& input,
                                 const checkpoint::Checkpoint& checkpoint) {
    std::vector<fs::path> files = input.paths;
    files.insert(files.end(), job.target_tokens.begin(), job.target_tokens.end());
    if (!job.labels.empty()) files.emplace_back(job.labels);
    if (!job.interventions.empty()) files.emplace_back(job.interventions);
    const std::vector<fs::path> own = files_of(checkpoint);
    files.insert(files.end(), own.begin(), own.end());
    return files;
}

/// Announces a run of half a minute or more: where no rate is known, one that reads for so long.
void announce_time(const analysis::Estimate& expected, bool rate_known) {
    constexpr double long_run = 30;  // seconds
    const double least = expected.read_bytes / analysis::Estimate::read_rate;
    if (rate_known && expected.seconds >= long_run)
        std::fprintf(stderr, "headscope: about %s, by earlier analyses on this machine\n",
                     format_seconds(expected.seconds).c_str());
    else if (least >= long_run)
        std::fprintf(stderr, "headscope: at least %s, to read %.1f GB of weights\n", format_seconds(least).c_str(),
                     expected.read_bytes / 1e9);
}

/// The last line of progress: "headscope: 100 %  512 tokens in 2 s, 256 tokens/s".
void announce_throughput(std::size_t tokens, double seconds) {
    finish_progress_line();
    std::fprintf(stderr, "headscope: 100 %%  %zu tokens in %s, %.0f tokens/s\n", tokens,
                 format_seconds(seconds).c_str(), static_cast<double>(tokens) / std::max(seconds, 1e-6));
}

Done analyse_one(const analysis::AnalysisJob& job, const std::shared_ptr<const checkpoint::Checkpoint>& checkpoint,
                 const fs::path& output, const Cancellation& cancellation) {
    const auto inspection = model::inspect(*checkpoint);
    const auto& config = inspection.config;
    const std::set<int> layers = parse_layers("--layers", job.layers), skip = parse_layers("--skip", job.skip);
    check_layers("--layers", layers, config.all_layers());
    check_layers("--skip", skip, config.all_layers());
    if (!config.encoder && !(job.targets.empty() && job.target_tokens.empty()))
        throw Error(ErrorCode::unsupported, "--target", "expected a model with an encoder and a decoder",
                    "found " + config.family);

    const auto tokenizer = tokenizer_of(*checkpoint);
    const analysis::JobModel job_model{*checkpoint, inspection, tokenizer.get()};
    auto reading = analysis::input_options(job, job_model);
    if (!job.examples.empty()) reading.resources = resource_folder();
    if (job.chat) reading.chat = load_chat_template(job.model);
    reading.check_length = [&](std::int64_t tokens) { model::check_length(tokens, config, job.beyond_positions); };
    auto input = analysis::read_input(reading, tokenizer.get(), &cancellation);
    std::vector<fs::path> inputs = files_read(job, input, *checkpoint);
    OutputFile::check_target(output, inputs);

    auto request = analysis::make_request(job, job_model, input, cancellation);
    request.layers = layers;
    request.skip_layers = skip;
    ask::InterventionPlan plan;
    if (!job.interventions.empty()) {
        plan = ask::read_interventions(job.interventions, {config, inspection.sites, tokenizer.get()});
        inputs.insert(inputs.end(), plan.files.begin(), plan.files.end());
        OutputFile::check_target(output, inputs);
        request.settings_json = analysis::with_interventions(request.settings_json, plan.toml);
    }
    analysis::check_request(inspection, request);  // before weights are read
    const bool bfloat16 = job.dtype == "bfloat16";
    const auto precision = bfloat16 ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    const analysis::MemoryOptions memory{.precision = precision, .residence = model::residence(job.weights)};
    request.batch_tokens = analysis::fitting_batch_tokens(inspection, request, memory);
    const auto shape = analysis::rate_shape(inspection, request, bfloat16, compute_threads());
    const auto known = analysis::RateBook::own().find(shape);
    analysis::EstimateOptions timed{known.value_or(analysis::Rate()), bfloat16, model::Residence::float32, true};
    const auto expected = analysis::estimate(inspection, request, timed);
    analysis::expect_disk_space(output, expected.file_bytes, 0);

    const auto residence = analysis::expect_memory(inspection, request, memory);
    request.settings_json = analysis::with_residence(request.settings_json, residence);
    timed.residence = residence;
    const auto planned = analysis::estimate(inspection, request, timed);
    analysis::expect_disk_space(output, planned.file_bytes, planned.spilled_bytes);
    announce_time(planned, known.has_value());
    checkpoint::FingerprintAhead fingerprint(checkpoint);
    ConsoleProgress progress;
    const auto model = model::Model::build(*checkpoint, precision, &progress, &cancellation, residence);
    plan.read_values(*model, &cancellation);
    request.interventions.insert(request.interventions.begin(), plan.list.begin(), plan.list.end());
    Done done{output, checkpoint->display_name(),   {}, json::parse(request.settings_json), request.sequences.size(),
              0,      loading_note(model->report())};
    for (const auto& sequence : request.sequences) done.tokens += sequence.ids.size();
    done.target = target_note(job, request);
    request.model_name = model_title(job.model, *checkpoint);
    request.model_sha256 = fingerprint.get(cancellation);
    request.config_json = model->config().to_json();
    const auto begin = std::chrono::steady_clock::now();
    analysis::run(*model, request, output, inputs, progress, cancellation);
    done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // Rates are of the processor's best kernels. A streamed run may wait for the disk.
    if (residence != model::Residence::stream && kernels::chosen_backend() == kernels::available_backends().front())
        analysis::RateBook::keep(shape, expected.multiplications, done.seconds);
    announce_throughput(analysis::token_count(request), done.seconds);
    const auto written = store::AnalysisFile::open(output);
    done.summary = analysis::summarise(*written);
    done.problems = written->problems();
    return done;
}

std::string adapter_line(const json& settings) {
    if (!settings.contains("adapter")) return "";
    const json& adapter = settings["adapter"];
    return "adapter " + escaped(adapter["name"].get<std::string>()) + ": merged into " +
           std::to_string(adapter["merged"].size()) + " tensors\n";
}

json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

json summary_json(const Done& done) {
    json rows = json::array(), losses = json::array();
    for (const auto& row : done.summary.rows) {
        json values;
        for (std::size_t c = 0; c < done.summary.columns.size(); ++c)
            values[done.summary.columns[c]] = number(row.values[c]);
        rows.push_back({{"layer", row.layer}, {"site", row.site}, {"heads", row.heads}, {"means", values}});
    }
    for (const double loss : done.summary.loss) losses.push_back(number(loss));
    return {{"output", done.output.string()},
            {"model", done.model},
            {"sequences", done.sequences},
            {"tokens", done.tokens},
            {"seconds", done.seconds},
            {"loss", losses},
            {"sites", rows},
            {"settings", done.settings},
            {"device", kernels::chosen_device()},
            {"kernels", kernels::last_backend()},
            {"target", done.target},
            {"note", done.note},
            {"problems", done.problems}};
}

void check_job(const analysis::AnalysisJob& job) {
    if (job.windows && job.length <= 0) throw UsageError("--windows needs --length");
    const bool others = !job.texts.empty() || !job.files.empty() || !job.examples.empty() || job.length > 0;
    if (!job.labels.empty() && (job.tokens.empty() || others))
        throw UsageError("--labels needs --tokens and excludes --text, --file, --example and --length");
}

void run(const Options& options, const Cancellation& cancellation) {
    check_job(options.job);
    if (!options.adapter.empty() && options.models.size() > 1)
        throw UsageError("--adapter needs one model; found " + std::to_string(options.models.size()));
    analysis::AnalysisJob job = options.job;
    configure_compute(static_cast<int>(job.threads), job.kernels, job.device);
    job.threads = compute_threads();
    json documents = json::array();
    std::vector<std::shared_ptr<const checkpoint::Checkpoint>> checkpoints;
    std::vector<std::string> names;
    for (const auto& model : options.models) {
        checkpoints.push_back(model::open_checkpoint(model, options.adapter));
        names.push_back(checkpoints.back()->display_name());
    }
    const std::vector<fs::path> outputs = outputs_for(options, names);
    for (const auto& output : outputs) OutputFile::check_target(output);
    for (std::size_t i = 0; i < checkpoints.size(); ++i) {
        job.model = options.models[i];
        const Done done = analyse_one(job, checkpoints[i], outputs[i], cancellation);
        if (options.json) {
            documents.push_back(summary_json(done));
            continue;
        }
        std::string problems;
        for (const std::string& problem : done.problems) problems += "problem: " + escaped(problem, 4096) + "\n";
        print(escaped(done.model) + ": " + std::to_string(done.sequences) +
              (done.sequences == 1 ? " sequence, " : " sequences, ") + std::to_string(done.tokens) +
              " tokens, first token " + done.settings["first_token"].get<std::string>() + "\n" +
              (done.target.empty() ? "" : done.target + "\n") + adapter_line(done.settings) +
              (job.switch_off.empty() ? ""
                                      : "heads switched off (" + job.switch_off_how + "): " + job.switch_off + "\n") +
              (done.note.empty() ? "" : done.note + "\n") + problems + "\n" + analysis::summary_text(done.summary) +
              "\n" + escaped(done.output.string(), 4096) + "\n");
    }
    if (options.json) print_json(documents.size() == 1 ? documents[0] : documents);
}

template <class T>
void add_job_option(CLI::App& command, const analysis::JobOption& option, T& value) {
    const std::string name = "--" + option.name;
    CLI::Option* added = nullptr;
    if constexpr (std::is_same_v<T, bool>)
        added = add_flag(command, name, value, option.help);
    else
        added = add_option(command, name, value, option.help);
    if constexpr (std::is_same_v<T, std::vector<std::string>>) added->expected(1)->take_all();
    if (option.kind == OptionKind::choices) added->delimiter(',');
    if (!option.choices.empty()) added->check(one_of(option.choices));
    if (option.accepts != nullptr) added->check(of_form(option));
    if (option.kind == OptionKind::whole)
        added->check(in_range(static_cast<std::int64_t>(option.lowest), static_cast<std::int64_t>(option.highest)));
    if (option.input) added->group("Input");
}

}  // namespace
}  // namespace analyze_command

void add_analyze(CLI::App& app, Context& context) {
    using namespace analyze_command;
    auto* command = app.add_subcommand("analyze", "Measure every head of models on texts, into an analysis file");
    auto options = std::make_shared<Options>();
    add_option(*command, "models", options->models, "Checkpoints")->required();
    add_option(*command, "-o,--output", options->output, "OUT.headscope.h5; with several models, one file each")
        ->required();
    add_option(*command, "--adapter", options->adapter, "A folder with a LoRA adapter (PEFT) to merge into the model");
    for (const analysis::JobOption& option : analysis::job_options())
        std::visit([&](const auto member) { add_job_option(*command, option, options->job.*member); }, option.member);
    command->get_option("--switch-off-how")->needs(command->get_option("--switch-off"));
    add_flag(*command, "--json", options->json, "One JSON document instead of the table");
    command->callback([&context, options, command] {
        const analysis::AnalysisJob& job = options->job;
        const bool has_texts = !job.texts.empty() || !job.files.empty() || !job.examples.empty();
        if (!has_texts && job.tokens.empty())
            throw CLI::ValidationError("analyze", "a --text, --file, --tokens or --example is expected");
        std::vector<std::string> kinds;
        if (has_texts) kinds.emplace_back("texts");
        if (!job.tokens.empty()) kinds.emplace_back("--tokens");
        if (analysis::record_levels(job.record).maps) kinds.emplace_back("--record maps");
        check_options("analyze", given_options(*command), kinds);
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
