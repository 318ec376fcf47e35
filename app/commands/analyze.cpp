// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/layer_list.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "app/resources.h"
#include "core/analysis/estimate.h"
#include "core/analysis/input.h"
#include "core/analysis/rate_book.h"
#include "core/analysis/request.h"
#include "core/analysis/settings.h"
#include "core/analysis/summary.h"
#include "core/analysis/switched_heads.h"
#include "core/analysis/targets.h"
#include "core/analysis/text_sources.h"
#include "core/base/error.h"
#include "core/base/free_space.h"
#include "core/base/output_file.h"
#include "core/base/text.h"
#include "core/model/model.h"
#include "core/model/open_checkpoint.h"
#include "core/model/towers/check_batch.h"
#include "core/store/analysis_file.h"
#include "core/training/job/job_name.h"
#include "kernels/backend.h"

namespace headscope::app {
namespace analyze_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Options {
    std::vector<std::string> models, texts, pairs, files, tokens, examples, targets, target_tokens, record;
    std::string adapter, output, labels, bos = "auto", layers, skip, switch_off, switch_off_how = "zero",
                                         dtype = "float32", device = "auto", kernels = "auto";
    std::int64_t length = 0;
    model::Segments segments;
    int threads = 0;
    bool windows = false, repeat_token = false, beyond_positions = false, all_rows = false, maps_int16 = false,
         json = false, chat = false;
};

store::RecordLevels parse_record(const std::vector<std::string>& names) {
    store::RecordLevels record;
    for (const auto& name : names) {
        if (name == "maps")
            record.maps = true;
        else if (name == "attention")
            record.attention = true;
        else if (name == "states")
            record.states = true;
        else if (name == "logits")
            record.logits = true;
        else if (name == "norms")
            record.norms = record.maps = true;  // a norm-based map is made of both
        else if (name == "implicit")
            record.implicit = true;
        else if (name == "branch-weights")
            record.branches = true;
        else if (name == "experts")
            record.experts = true;
        else
            throw UsageError(
                "--record: a list of maps, attention, states, logits, experts, norms, implicit, branch-weights is "
                "expected; found " +
                escaped(name));
    }
    return record;
}

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

analysis::InputOptions input_options(const Options& options) {
    analysis::InputOptions input;
    input.texts = options.texts;
    input.pairs = options.pairs;
    input.files.assign(options.files.begin(), options.files.end());
    input.token_files.assign(options.tokens.begin(), options.tokens.end());
    input.examples = options.examples;
    if (!options.examples.empty()) input.resources = resource_folder();
    input.first_token = options.bos == "yes"  ? analysis::FirstToken::yes
                        : options.bos == "no" ? analysis::FirstToken::no
                                              : analysis::FirstToken::automatic;
    input.length = options.length;
    input.windows = options.windows;
    input.repeat_token = options.repeat_token;
    return input;
}

analysis::TargetOptions target_options(const Options& options, const model::ModelConfig& config) {
    analysis::TargetOptions target;
    target.texts = options.targets;
    target.token_files.assign(options.target_tokens.begin(), options.target_tokens.end());
    target.start = static_cast<std::int32_t>(config.decoder_start);
    target.vocabulary = config.ids();
    target.length = options.windows ? 0 : options.length;
    target.repeat_token = options.repeat_token;
    return target;
}

/// What the decoder of an encoder-decoder read; empty for other models.
std::string target_note(const Options& options, const analysis::AnalysisRequest& request) {
    if (request.targets.empty()) return "";
    if (options.targets.empty() && options.target_tokens.empty())
        return "no --target: the decoder read its start token alone";
    std::size_t tokens = 0;
    for (const auto& target : request.targets) tokens += target.ids.size();
    return "the decoder read " + std::to_string(tokens) + " tokens, the start token first in each sequence";
}

analysis::Settings settings_of(const Options& options, const std::string& model, const checkpoint::Adapter* adapter) {
    analysis::Settings settings;
    settings.model = model;
    settings.texts = options.texts.size();
    settings.files = options.files;
    settings.tokens = options.tokens;
    settings.examples = options.examples;
    settings.targets = options.targets.size();
    settings.pairs = options.pairs.size();
    settings.target_tokens = options.target_tokens;
    settings.labels = options.labels;
    settings.maps_int16 = options.maps_int16;
    settings.record = options.record;
    settings.layers = options.layers;
    settings.skip = options.skip;
    settings.switch_off = options.switch_off;
    settings.switch_off_how = options.switch_off_how;
    settings.dtype = options.dtype;
    settings.kernels = options.kernels;
    settings.threads = compute_threads();
    settings.adapter = adapter;
    settings.bos = options.bos;
    settings.length = options.length;
    settings.segments = options.segments;
    settings.windows = options.windows;
    settings.repeat_token = options.repeat_token;
    settings.chat = options.chat;
    settings.beyond_positions = options.beyond_positions;
    settings.all_rows = options.all_rows;
    return settings;
}

struct Done {
    fs::path output;
    std::string model;
    analysis::Summary summary;
    json settings;
    std::size_t sequences = 0, tokens = 0;
    std::string note, target = {};
    std::vector<std::string> problems = {};
};

/// What the file held besides the model, in a line; empty when there is nothing to say.
std::string loading_note(const model::LoadReport& report) {
    if (report.left_over.empty()) return "";
    std::string text =
        std::to_string(report.left_over.size()) + " tensors left over: " + list_text(report.left_over, 3);
    for (const auto& note : report.notes) text += "; " + escaped(note);
    return text;
}

Done analyse_one(const Options& options, const std::string& path,
                 const std::shared_ptr<const checkpoint::Checkpoint>& checkpoint, const fs::path& output,
                 const Cancellation& cancellation) {
    const auto inspection = model::inspect(*checkpoint);
    const std::set<int> layers = parse_layers("--layers", options.layers), skip = parse_layers("--skip", options.skip);
    check_layers("--layers", layers, inspection.config.all_layers());
    check_layers("--skip", skip, inspection.config.all_layers());
    const auto how = options.switch_off_how == "mean" ? model::SwitchedOff::How::mean : model::SwitchedOff::How::zero;
    const auto switched_off = analysis::parse_switched_off(options.switch_off, how, inspection.sites);
    if (!inspection.config.encoder && !(options.targets.empty() && options.target_tokens.empty()))
        throw Error(ErrorCode::unsupported, "--target", "expected a model with an encoder and a decoder",
                    "found " + inspection.config.family);

    const auto tokenizer = tokenizer_of(*checkpoint);
    auto input_choice = input_options(options);
    if (options.chat) input_choice.chat = load_chat_template(path);
    input_choice.vocabulary = inspection.config.source_vocabulary();
    input_choice.check_length = [&](std::int64_t tokens) {
        model::check_length(tokens, inspection.config, options.beyond_positions);
    };
    if (tokenizer) input_choice.first_token_id = analysis::beginning_token(*checkpoint, *tokenizer);
    auto input = analysis::read_input(input_choice, tokenizer.get(), &cancellation);
    std::vector<fs::path> inputs = input.paths;
    inputs.insert(inputs.end(), options.target_tokens.begin(), options.target_tokens.end());
    if (!options.labels.empty()) inputs.emplace_back(options.labels);
    inputs.insert(inputs.end(), checkpoint->files().begin(), checkpoint->files().end());
    for (const char* side :
         {"config.json", "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "vocab.bin", "vocab.pkl",
          "vocab.pt", "source.spm", "target.spm", "target_vocab.json", "sentencepiece.bpe.model", "spiece.model",
          "ngrams.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"})
        if (const auto file = checkpoint->side_file(side)) inputs.push_back(*file);
    if (const auto* adapter = checkpoint->adapter()) {
        inputs.push_back(adapter->file().path());
        inputs.push_back(adapter->path() / checkpoint::adapter_config_name);
    }
    OutputFile::check_target(output, inputs);

    analysis::AnalysisRequest request;
    request.sequences = std::move(input.sequences);
    if (inspection.config.encoder) {
        request.targets = analysis::read_targets(target_options(options, inspection.config), request.sequences.size(),
                                                 tokenizer.get(), &cancellation);
    }
    if (!options.labels.empty()) request.labels = analysis::read_label_file(options.labels);
    request.record = parse_record(options.record);
    request.layers = layers;
    request.skip_layers = skip;
    request.switched_off = switched_off;
    request.segments = options.segments;
    request.beyond_positions = options.beyond_positions;
    request.all_rows = options.all_rows;
    request.maps_int16 = options.maps_int16;
    analysis::check_request(inspection, request);  // whatever can be refused without the weights
    const bool bfloat16 = options.dtype == "bfloat16";
    const auto shape = analysis::rate_shape(inspection, request, bfloat16, compute_threads());
    const auto known = analysis::RateBook::own().find(shape);
    const auto expected = analysis::estimate(inspection, request, {known.value_or(analysis::Rate()), bfloat16, true});
    expect_free_space(output, expected.file_bytes, "this analysis file");
    constexpr double long_run = 30;  // seconds
    if (known && expected.seconds >= long_run)
        std::fprintf(stderr, "headscope: about %s, by earlier analyses on this machine\n",
                     format_seconds(expected.seconds).c_str());

    const auto precision = bfloat16 ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    analysis::expect_memory(inspection, request, {.precision = precision});
    ConsoleProgress progress;
    const auto model = model::Model::build(*checkpoint, precision, &progress, &cancellation);
    request.settings_json = settings_of(options, path, checkpoint->adapter()).json(input);
    Done done{output, checkpoint->display_name(),   {}, json::parse(request.settings_json), request.sequences.size(),
              0,      loading_note(model->report())};
    for (const auto& sequence : request.sequences) done.tokens += sequence.ids.size();
    done.target = target_note(options, request);
    request.model_name = training::snapshot_title(path);
    if (checkpoint->adapter() && !request.model_name.empty())
        request.model_name += " + " + checkpoint->adapter()->display_name();
    request.model_sha256 = checkpoint->fingerprint(cancellation);
    request.config_json = model->config().to_json();
    const auto begin = std::chrono::steady_clock::now();
    analysis::run(*model, request, output, inputs, progress, cancellation);
    analysis::RateBook::keep(shape, expected.multiplications,
                             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
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
            {"loss", losses},
            {"sites", rows},
            {"settings", done.settings},
            {"kernels", kernels::last_backend()},
            {"target", done.target},
            {"note", done.note},
            {"problems", done.problems}};
}

void run(const Options& options, const Cancellation& cancellation) {
    if (options.windows && options.length <= 0)
        throw UsageError("--windows: a --length is expected beside it; found none");
    if (!options.labels.empty() && (options.tokens.empty() || !options.texts.empty() || !options.files.empty() ||
                                    !options.examples.empty() || options.length > 0))
        throw UsageError("--labels: --tokens alone, without --length, is expected beside it; found other input");
    if (!options.adapter.empty() && options.models.size() > 1)
        throw UsageError("--adapter: one model is expected beside it; found " + std::to_string(options.models.size()));
    parse_record(options.record);  // what is wrong with it is told before a checkpoint is opened
    configure_compute(options.threads, options.kernels, options.device);
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
        const Done done = analyse_one(options, options.models[i], checkpoints[i], outputs[i], cancellation);
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
              (options.switch_off.empty()
                   ? ""
                   : "heads switched off (" + options.switch_off_how + "): " + options.switch_off + "\n") +
              (done.note.empty() ? "" : done.note + "\n") + problems + "\n" + analysis::summary_text(done.summary) +
              "\n" + escaped(done.output.string(), 4096) + "\n");
    }
    if (options.json) print_json(documents.size() == 1 ? documents[0] : documents);
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
    add_option(*command, "--text", options->texts, "A text; may repeat")->group("Input")->expected(1)->take_all();
    add_option(
        *command, "--pair", options->pairs,
        "A second text: each text becomes a pair with it, as the tokenizer joins them; one, or one for each text")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(*command, "--file", options->files, "A text file; - is standard input; may repeat")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(*command, "--tokens", options->tokens,
               "A JSON array of arrays of ids; needs no tokenizer. Of hash embeddings also words, or {\"hash\": HEX}")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(
        *command, "--labels", options->labels,
        "What the head of an encoder is to say of each token of --tokens: a JSON array of arrays of numbers, -100 "
        "for none; the loss of each is kept")
        ->group("Input");
    add_option(*command, "--example", options->examples, "A bundled text; see headscope list examples")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(*command, "--target", options->targets,
               "The decoder's side of an encoder-decoder: one text, or one for each sequence")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(*command, "--target-tokens", options->target_tokens,
               "The same as a JSON array of arrays of ids, which follow the start token")
        ->group("Input")
        ->expected(1)
        ->take_all();
    add_option(*command, "--bos", options->bos, "The token before the text: yes, no, auto (as the tokenizer does)")
        ->check(one_of({"yes", "no", "auto"}))
        ->group("Input");
    add_flag(*command, "--chat", options->chat,
             "Each text is a user's message, put into the checkpoint's chat template")
        ->group("Input");
    add_option(*command, "--length", options->length, "Cut each sequence to so many tokens")
        ->check(in_range(std::int64_t{1}, std::int64_t{1} << 24))
        ->group("Input");
    add_flag(*command, "--windows", options->windows, "Cut a long text into windows of --length instead")
        ->group("Input");
    add_option(*command, "--segment", options->segments.tokens,
               "Transformer-XL: read each sequence in segments of so many tokens, each behind the model's memory")
        ->check(in_range(std::int64_t{1}, std::int64_t{1} << 24))
        ->group("Input");
    add_option(*command, "--memory", options->segments.memory,
               "Transformer-XL: so many tokens of memory, 0: none; else as the model has")
        ->check(in_range(std::int64_t{0}, std::int64_t{1} << 24))
        ->group("Input");
    add_flag(*command, "--repeat-token", options->repeat_token, "Replace every token by the text's first one")
        ->group("Input");
    add_option(*command, "--record", options->record,
               "Keep more: maps, attention, states, logits, experts, norms (with maps: for norm-based maps), implicit "
               "(matrices of recurrent layers), branch-weights (of NAtS-L)")
        ->delimiter(',')
        ->expected(1)
        ->take_all();
    add_option(*command, "--layers", options->layers, "Measure these layers only: 0,2,5-8");
    add_option(*command, "--skip", options->skip, "Leave these blocks out of the model: 0,2,5-8");
    auto* switch_off = add_option(*command, "--switch-off", options->switch_off,
                                  "Switch heads off, as layer.head: 3.1,4.2; of several attentions of a "
                                  "layer 3.cross.1. They are measured, what follows them changes");
    add_option(*command, "--switch-off-how", options->switch_off_how, "Their output becomes zero, or its mean")
        ->check(one_of({"zero", "mean"}))
        ->needs(switch_off);
    add_option(*command, "--dtype", options->dtype, "Of weights and activations: float32 or bfloat16")
        ->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--device", options->device, "cpu, cuda or auto")->check(one_of({"cpu", "cuda", "auto"}));
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_option(*command, "--kernels", options->kernels, "auto, reference or one of headscope list kernels");
    add_flag(*command, "--beyond-positions", options->beyond_positions,
             "Let rotary and position-free models run past their limit; figures mark it");
    add_flag(*command, "--all-rows", options->all_rows, "Histograms of every row");
    add_flag(*command, "--maps-int16", options->maps_int16, "Half the space for --record maps, coarser weights");
    add_flag(*command, "--json", options->json, "One JSON document instead of the table");
    command->callback([&context, options, command] {
        if (options->texts.empty() && options->files.empty() && options->tokens.empty() && options->examples.empty())
            throw CLI::ValidationError("analyze", "a --text, --file, --tokens or --example is expected");
        std::vector<std::string> kinds;
        if (!options->texts.empty() || !options->files.empty() || !options->examples.empty())
            kinds.emplace_back("texts");
        if (!options->tokens.empty()) kinds.emplace_back("--tokens");
        if (parse_record(options->record).maps) kinds.emplace_back("--record maps");
        check_options("analyze", given_options(*command), kinds);
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
