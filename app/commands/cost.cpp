// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/evaluation_output.h"
#include "app/commands/layer_list.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/free_memory.h"
#include "core/base/json.h"
#include "core/base/machine/processors.h"
#include "core/base/output_file.h"
#include "core/cost/latency.h"
#include "core/cost/measure.h"
#include "core/cost/thesis.h"
#include "core/evaluation/describe.h"
#include "core/model/memory.h"
#include "core/model/model.h"
#include "core/model/native_config.h"
#include "core/model/presets.h"

namespace headscope::app {
namespace cost_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t largest_config = 4U << 20U;

struct Options {
    std::string preset, config, lengths = "128,512,2048", output;
    std::vector<std::string> models, mixers;
    std::int64_t batch = 0, tensor_parallel = 1, bytes = 0;  // 0: the usual
    std::int64_t length = 512, hidden = 768, rows = 50'265, bits = 128, group_bits = 10;
    double softmax_share = cost::CostSetting().softmax_share;
    std::uint64_t seed = 1;
    int threads = 0;
    bool measure = false, latency = false, variants = false, embeddings = false, json = false;
    std::vector<std::string> given;

    std::int64_t batch_or(std::int64_t usual) const { return batch > 0 ? batch : usual; }
};

/// What a cost is asked of: a configuration and its sizes.
struct Subject {
    std::string name;
    model::ModelConfig config;
    std::int64_t parameters = 0;
    std::string printed;  ///< parameters as a paper names the size
    std::shared_ptr<const checkpoint::Checkpoint> checkpoint;
};

Subject subject_of(const Options& options) {
    Subject subject;
    if (!options.config.empty()) {
        const fs::path path(options.config);
        const auto document = parse_python_json(read_small_file(path, largest_config, "configuration"), options.config);
        const auto inspection = model::inspect_config(document.dump());
        subject.name = path.filename().string();
        subject.config = inspection.config;
        subject.parameters = inspection.parameters;
        return subject;
    }
    if (options.models.empty()) {
        subject.name = options.preset.empty() ? "deconattn-500m" : options.preset;
        const auto inspection = model::inspect_config(model::preset_json(subject.name).dump());
        subject.config = inspection.config;
        subject.parameters = inspection.parameters;
        for (const auto& preset : model::presets())
            if (preset.name == subject.name) subject.printed = preset.printed;
        return subject;
    }
    subject.checkpoint = checkpoint::Checkpoint::open(evaluation::checkpoint_in(options.models.front()));
    const auto inspection = model::inspect(*subject.checkpoint);
    subject.name = subject.checkpoint->display_name();
    subject.config = inspection.config;
    subject.parameters = inspection.parameters;
    return subject;
}

std::string short_number(double value, double step, const char* const* units) {
    if (!std::isfinite(value)) return "";
    int unit = 0;
    for (; value >= step && unit < 5; ++unit) value /= step;
    char text[40];
    std::snprintf(text, sizeof text, unit == 0 && value == std::floor(value) ? "%.0f%s" : "%.4g%s", value, units[unit]);
    return text;
}

std::string flops_text(double value) {
    static const char* const units[] = {"", " k", " M", " G", " T", " P"};
    return short_number(value, 1000, units);
}

std::string bytes_text(double value) {
    static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return short_number(value, 1024, units);
}

json number(double value) {
    return std::isfinite(value) ? json(value) : json();
}

json formulas_json(const cost::MixerCost& cost) {
    json formulas = {{"time", cost.time.text()},           {"prefill_flops", cost.prefill.text()},
                     {"decode_flops", cost.decode.text()}, {"activation_bytes", cost.activation.text()},
                     {"cache_bytes", cost.cache.text()},   {"parameters", cost.parameters.text()}};
    if (cost.precomputed_prefill) formulas["precomputed_prefill_flops"] = cost.precomputed_prefill->text();
    if (cost.precomputed_decode) formulas["precomputed_decode_flops"] = cost.precomputed_decode->text();
    return formulas;
}

json row_json(const cost::CostRow& row) {
    json paper = {{"time", row.paper.time},
                  {"prefill_flops", row.paper.prefill},
                  {"decode_flops", number(row.paper.decode)},
                  {"activation_bytes", number(row.paper.activation)},
                  {"cache_bytes", number(row.paper.cache)},
                  {"parameters", row.paper.parameters}};
    if (row.paper.precomputed_prefill) paper["precomputed_prefill_flops"] = *row.paper.precomputed_prefill;
    if (row.paper.precomputed_decode) paper["precomputed_decode_flops"] = *row.paper.precomputed_decode;
    json one = {{"mixer", row.mixer}, {"length", row.length}, {"paper", paper}};
    if (row.measured) {
        one["measured"] = {{"prefill_flops", row.measured->prefill_flops},
                           {"decode_flops", number(row.measured->decode_flops)},
                           {"activation_bytes", number(row.measured->activation_bytes)},
                           {"cache_bytes", number(row.measured->cache_bytes)},
                           {"guide_flops", row.guide_flops.value_or(0)}};
    }
    return one;
}

json model_json(const cost::MeasuredModel& model) {
    json layers = json::array();
    for (const auto& layer : model.layers) {
        layers.push_back({{"mixer", layer.mixer},
                          {"prefill_flops", layer.prefill_flops},
                          {"decode_flops", number(layer.decode_flops)},
                          {"activation_bytes", number(layer.activation_bytes)},
                          {"cache_bytes", number(layer.cache_bytes)}});
    }
    return {{"length", model.length},
            {"batch", model.batch},
            {"type", model.type},
            {"layers", layers},
            {"guide_flops", model.guide_flops},
            {"forward_flops", model.forward_flops},
            {"decode_flops", number(model.decode_flops)},
            {"training_flops", number(model.training_flops)},
            {"forward_peak_bytes", model.forward_peak_bytes},
            {"training_peak_bytes", number(model.training_peak_bytes)},
            {"cache_bytes", number(model.cache_bytes)},
            {"forward_seconds", model.forward_seconds},
            {"decode_seconds", number(model.decode_seconds)},
            {"training_seconds", number(model.training_seconds)}};
}

void print_formulas(const cost::CostTable& table) {
    std::vector<std::vector<std::string>> rows;
    std::string last;
    for (const auto& row : table.rows) {
        if (row.mixer == last) continue;
        last = row.mixer;
        const auto& cost = cost::mixer_cost(row.mixer);
        rows.push_back({cost.label, "O(" + cost.time.pretty() + ")", cost.prefill.pretty(), cost.decode.pretty(),
                        cost.activation.pretty(), cost.cache.pretty(), cost.parameters.pretty()});
        if (cost.precomputed_prefill)
            rows.push_back({"  maps computed before", "", cost.precomputed_prefill->pretty(),
                            cost.precomputed_decode->pretty(), "", "", ""});
    }
    const bool states = std::any_of(table.rows.begin(), table.rows.end(), [](const cost::CostRow& row) {
        return cost::mixer_cost(row.mixer).activation.text().empty();
    });
    print(
        "As printed: B sequences, L tokens, d hidden, h heads, t tensor-parallel; bytes at 2 a number.\n" +
        (states ? "As the program counts what it runs: " + std::string(cost::kOwnLetters) + ".\n" : "") +
        format_table(
            {"mixer", "time", "FLOPs prefill", "FLOPs decode", "activation bytes", "cache bytes", "parameters"}, rows) +
        "\n");
}

void print_numbers(const cost::CostTable& table, bool measured) {
    std::vector<std::string> header{"mixer", "length"};
    for (const char* what : {"prefill", "decode", "activation", "cache"}) {
        header.emplace_back(what);
        if (measured) header.emplace_back("measured");
    }
    if (measured) header.emplace_back("guides, once");
    header.emplace_back("parameters");
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : table.rows) {
        std::vector<std::string> cells{cost::mixer_cost(row.mixer).label, std::to_string(row.length)};
        const auto add = [&](std::string paper, std::string here) {
            cells.push_back(std::move(paper));
            if (measured) cells.push_back(row.measured ? std::move(here) : "");
        };
        const cost::MeasuredMixer here = row.measured.value_or(cost::MeasuredMixer{});
        add(flops_text(row.paper.prefill), flops_text(here.prefill_flops));
        add(flops_text(row.paper.decode), flops_text(here.decode_flops));
        add(bytes_text(row.paper.activation), bytes_text(here.activation_bytes));
        add(bytes_text(row.paper.cache), bytes_text(here.cache_bytes));
        if (measured) cells.push_back(row.guide_flops.value_or(0) > 0 ? flops_text(*row.guide_flops) : "");
        cells.push_back(flops_text(row.paper.parameters));
        rows.push_back(std::move(cells));
    }
    const auto& s = table.setting;
    print("One layer's mixer without its output projection: B = " + std::to_string(s.batch) + ", d = " +
          std::to_string(s.hidden) + ", h = " + std::to_string(s.heads) + ", t = " + std::to_string(s.tensor_parallel) +
          ", " + std::to_string(s.bytes) + " bytes a number.\n" + format_table(header, rows) + "\n");
}

void print_model(const Subject& subject, const std::vector<cost::MeasuredModel>& measured) {
    std::string line = escaped(subject.name) + ": " + std::to_string(subject.parameters) + " parameters";
    if (!subject.printed.empty()) line += " (" + subject.printed + " in the paper)";
    print(line + "\n");
    if (measured.empty()) return;
    std::vector<std::vector<std::string>> rows;
    for (const auto& one : measured) {
        rows.push_back({std::to_string(one.length), flops_text(one.forward_flops), flops_text(one.decode_flops),
                        flops_text(one.training_flops), bytes_text(one.forward_peak_bytes),
                        bytes_text(one.training_peak_bytes), bytes_text(one.cache_bytes)});
    }
    print(
        "\nThe whole model as it is, measured (FLOPs; peaks of tensors beyond weights and gradients):\n" +
        format_table({"length", "forward", "decode", "training step", "forward peak", "training peak", "cache"}, rows));
}

std::string seconds_text(double value) {
    static const char* const units[] = {" ns", " us", " ms", " s"};
    if (!std::isfinite(value)) return "";
    int unit = 0;
    for (value *= 1e9; value >= 1000 && unit < 3; ++unit) value /= 1000;
    char text[40];
    std::snprintf(text, sizeof text, "%.3g%s", value, units[unit]);
    return text;
}

/// The last minute's load of the machine; NaN where the system does not say.
double load_average() {
    double load = 0;
    return ::getloadavg(&load, 1) == 1 ? load : std::nan("");
}

store::Evaluation latency_rows(const cost::Latency& latency) {
    store::Evaluation evaluation;
    for (const auto& row : latency.rows) {
        const auto add = [&](const char* task, const char* metric, double value) {
            if (std::isfinite(value))
                evaluation.results.push_back({row.model, task, metric, row.length, value, std::nan(""), row.runs});
        };
        const auto add_times = [&](const char* task, const cost::Percentiles& times) {
            add(task, "seconds", times.median);
            add(task, "seconds_p10", times.p10);
            add(task, "seconds_p90", times.p90);
        };
        add_times("prefill", row.prefill);
        add("prefill", "peak_bytes", row.peak_bytes);
        add("prefill", "cache_bytes", row.cache_bytes);
        add_times("decode", row.decode);
    }
    return evaluation;
}

void print_latency(const cost::Latency& latency, const std::vector<std::string>& names, double load,
                   const Options& options) {
    const auto spread = [](const cost::Percentiles& times) {
        return std::isfinite(times.median) ? seconds_text(times.p10) + " to " + seconds_text(times.p90) : std::string();
    };
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : latency.rows)
        rows.push_back({escaped(names[static_cast<std::size_t>(row.model)]), std::to_string(row.length),
                        seconds_text(row.prefill.median), spread(row.prefill), seconds_text(row.decode.median),
                        spread(row.decode), std::to_string(row.runs), bytes_text(row.peak_bytes),
                        bytes_text(row.cache_bytes)});
    print("Medians, and 10th to 90th percentiles, of B = " + std::to_string(options.batch_or(1)) + " sequences on " +
          std::to_string(compute_threads()) + " threads; peaks of tensors beside the weights.\n" +
          format_table({"model", "length", "prefill", "spread", "one token", "spread", "runs", "peak", "cache"}, rows));
    for (const auto& one : latency.left_out)
        print(escaped(names[static_cast<std::size_t>(one.model)]) + " is left out at " + std::to_string(one.length) +
              ": " + one.why + "\n");
    if (load > usable_processors() / 2.0)
        print("The machine was busy when this began (load " + std::to_string(std::lround(load)) +
              "): times may be longer than they need be.\n");
}

/// All models are in memory at once.
void expect_memory_of(const std::vector<std::shared_ptr<const checkpoint::Checkpoint>>& checkpoints) {
    double bytes = 0;
    for (const auto& one : checkpoints) bytes += model::weight_bytes(model::inspect(*one), checkpoint::LoadAs::float32);
    expect_memory("weights in float32", bytes, {}, "time fewer models at once");
}

void run_latency(const Options& options, const Cancellation& cancellation) {
    if (options.models.empty()) throw UsageError("--latency: models are expected; found none");
    if (options.measure || !options.mixers.empty())
        throw UsageError("--latency: neither --measure nor --mixers is expected beside it; found one");
    if (!options.output.empty()) check_evaluation_name(options.output);
    configure_compute(options.threads, "auto", "cpu");
    std::vector<std::shared_ptr<const checkpoint::Checkpoint>> checkpoints;
    std::vector<fs::path> inputs;
    for (const std::string& path : options.models) {
        checkpoints.push_back(checkpoint::Checkpoint::open(evaluation::checkpoint_in(path)));
        inputs.insert(inputs.end(), checkpoints.back()->files().begin(), checkpoints.back()->files().end());
    }
    if (!options.output.empty()) OutputFile::check_target(options.output, inputs);
    cost::LatencyOptions wish;
    wish.lengths = parse_lengths("--lengths", options.lengths);
    wish.batch = options.batch_or(1);
    wish.seed = options.seed;
    wish.cancellation = &cancellation;
    ConsoleProgress progress;
    expect_memory_of(checkpoints);
    std::vector<std::shared_ptr<model::Model>> models;
    std::vector<store::EvaluatedModel> described;
    std::vector<std::string> names;
    for (const auto& checkpoint : checkpoints) {
        models.push_back(model::Model::build(*checkpoint, checkpoint::LoadAs::float32, &progress, &cancellation));
        const auto job = evaluation::job_of(checkpoint->path());
        described.push_back(evaluation::describe(*checkpoint, *models.back(), {}, job ? &*job : nullptr, cancellation));
        names.push_back(described.back().name = evaluation::evaluated_name(*checkpoint));
    }
    const double load = load_average();
    const cost::Latency latency = cost::measure_latency(models, wish, progress);
    finish_progress_line();
    store::Evaluation evaluation = latency_rows(latency);
    evaluation.models = std::move(described);
    json left_out = json::array();
    for (const auto& one : latency.left_out)
        left_out.push_back({{"model", one.model}, {"length", one.length}, {"why", one.why}});
    evaluation.settings_json = json{
        {"latency",
         {{"batch", options.batch_or(1)},
          {"seed", options.seed},
          {"threads", compute_threads()},
          {"load", number(load)},
          {"left_out", left_out}}}}.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_latency(latency, names, load, options);
}

std::int64_t whole(double value) {
    return std::llround(value);
}

/// Tables 3.4 and 3.13: the variants of multi-head attention at the sizes of a model.
void run_variants(const Options& options) {
    constexpr std::int64_t usual_batch = 32;  // the thesis's
    const Subject subject = subject_of(options);
    const model::ModelConfig& config = subject.config;
    if (config.heads * config.head_size != config.hidden) {
        throw Error(ErrorCode::mismatch, subject.name,
                    "expected a hidden size of heads * head size, " + std::to_string(config.heads * config.head_size),
                    "found " + std::to_string(config.hidden));
    }
    const std::int64_t batch = options.batch_or(usual_batch);
    const std::int64_t sublayers = config.encoder ? config.encoder->layers + 2 * config.layers : config.layers;
    json variants = json::array();
    std::vector<std::vector<std::string>> rows;
    for (const cost::HeadVariant& variant : cost::head_variants()) {
        const auto count = [&](std::int64_t times, bool with_output) {
            return whole(cost::variant_parameters(variant, config.heads, config.head_size, times, with_output));
        };
        const cost::BlockMemory memory =
            cost::block_memory(variant, config.heads, config.head_size, batch, options.length);
        const double saving = cost::memory_saving(variant, config.heads, config.head_size, batch, options.length);
        variants.push_back({{"mixer", variant.name},
                            {"sublayer", count(1, false)},
                            {"sublayer_with_output", count(1, true)},
                            {"stack", count(sublayers, false)},
                            {"stack_with_output", count(sublayers, true)},
                            {"memory",
                             {{"weights", whole(memory.weights)},
                              {"gradients", whole(memory.gradients)},
                              {"adam", whole(memory.adam)},
                              {"activations", whole(memory.activations)},
                              {"total", whole(memory.total())}}},
                            {"saving", saving}});
        char percent[32];
        std::snprintf(percent, sizeof percent, "%.2f %%", 100 * saving);
        rows.push_back({variant.label, variant.parameters.pretty(), std::to_string(count(1, false)),
                        std::to_string(count(1, true)), std::to_string(count(sublayers, false)),
                        std::to_string(count(sublayers, true)), bytes_text(memory.weights),
                        bytes_text(memory.gradients), bytes_text(memory.adam), bytes_text(memory.activations),
                        bytes_text(memory.total()), percent});
    }
    if (options.json) return print_json({{"variants", variants}});
    print("Weights of attention at the sizes of " + escaped(subject.name) + ": n = " + std::to_string(config.heads) +
          " heads of d = " + std::to_string(config.head_size) + ", " + std::to_string(sublayers) +
          " sublayers. Memory of one of them with its output projection in mixed precision, for " +
          std::to_string(batch) + " texts of " + std::to_string(options.length) + " tokens.\n" +
          format_table({"variant", "formula", "a sublayer", "with W^O", "all", "with W^O", "weights", "gradients",
                        "Adam", "activations", "together", "saving"},
                       rows));
}

/// Table 2.2's counts.
void run_embeddings(const Options& options) {
    if (!options.models.empty() || !options.preset.empty() || !options.config.empty())
        throw UsageError(
            "--embeddings: sizes are expected by --hidden, --rows, --bits and --group-bits; found a model");
    json embeddings = json::array();
    std::vector<std::vector<std::string>> rows;
    for (const cost::HashEmbedding& embedding : cost::hash_embeddings()) {
        const std::int64_t count = whole(
            cost::embedding_parameters(embedding, options.rows, options.bits, options.group_bits, options.hidden));
        embeddings.push_back({{"kind", embedding.name}, {"parameters", count}});
        rows.push_back({embedding.name, embedding.label, embedding.parameters.pretty(), std::to_string(count)});
    }
    if (options.json) return print_json({{"embeddings", embeddings}});
    print("d = " + std::to_string(options.hidden) + " hidden, N = " + std::to_string(options.rows) +
          " rows, T = " + std::to_string(options.bits) + " bits in g groups of " + std::to_string(options.group_bits) +
          " with c codes each.\n" + format_table({"kind", "in the thesis", "formula", "parameters"}, rows));
}

void run(const Options& options, const Cancellation& cancellation) {
    if (int(!options.models.empty()) + int(!options.preset.empty()) + int(!options.config.empty()) > 1 ||
        (options.models.size() > 1 && !options.latency))
        throw UsageError("--preset: a model, a preset or a configuration is expected; found more than one");
    if (int(options.latency) + int(options.variants) + int(options.embeddings) > 1)
        throw UsageError("--variants: one of --latency, --variants and --embeddings is expected; found more");
    if ((options.variants || options.embeddings) &&
        (options.measure || !options.mixers.empty() || !options.output.empty()))
        throw UsageError(
            "--variants, --embeddings: neither --measure, --mixers nor -o is expected beside them; found one");
    check_options("cost", options.given,
                  {options.latency      ? "--latency"
                   : options.variants   ? "--variants"
                   : options.embeddings ? "--embeddings"
                   : options.measure    ? "--measure"
                                        : "formulas"});
    if (options.latency) return run_latency(options, cancellation);
    if (options.variants) return run_variants(options);
    if (options.embeddings) return run_embeddings(options);
    configure_compute(options.threads, "auto", "cpu");
    const Subject subject = subject_of(options);
    if (!options.output.empty())
        OutputFile::check_target(options.output,
                                 subject.checkpoint ? subject.checkpoint->files() : std::vector<fs::path>{});
    const std::vector<std::int64_t> lengths = parse_lengths("--lengths", options.lengths);
    cost::CostSetting setting;
    setting.batch = options.batch_or(1);
    setting.hidden = subject.config.hidden;
    setting.heads = subject.config.heads;
    setting.head_size = subject.config.head_size;
    setting.options = subject.config.mixer_options;
    setting.softmax_share = options.softmax_share;
    setting.tensor_parallel = options.tensor_parallel;
    setting.bytes = options.bytes > 0 ? options.bytes : options.measure ? 4 : 2;
    cost::CostTable table = cost::paper_table(setting, lengths, options.mixers);
    std::vector<cost::MeasuredModel> whole;
    if (options.measure) {
        ConsoleProgress progress;
        // Formulas know any family by its sizes; what is measured are stacks of ours.
        cost::measure_table(table, model::native_json(subject.config).dump(), progress, cancellation);
        if (subject.checkpoint) {
            const model::Inspection inspection = model::inspect(*subject.checkpoint);
            expect_memory("weights and gradients in float32",
                          2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32), {}, "");
            const auto trainable =
                model::Trainable::open(*subject.checkpoint, at::kFloat, {}, 0, nullptr, &cancellation);
            for (const std::int64_t length : lengths) {
                const std::int64_t most = subject.config.max_positions;
                if (most > 0 && length + 1 > most) continue;  // one more token is decoded
                cost::MeasureOptions one;
                one.batch = options.batch_or(1);
                one.length = length;
                one.cancellation = &cancellation;
                whole.push_back(cost::measure(*trainable, one));
            }
        }
        finish_progress_line();
    }
    if (!options.output.empty()) {
        OutputFile file(options.output, {}, "table");
        file.append(cost::cost_csv(table));
        file.publish();
    }
    if (!options.json) {
        print_formulas(table);
        print_numbers(table, options.measure);
        print_model(subject, whole);
        return;
    }
    json formulas = json::object(), rows = json::array(), models = json::array();
    for (const auto& row : table.rows) {
        formulas[row.mixer] = formulas_json(cost::mixer_cost(row.mixer));
        rows.push_back(row_json(row));
    }
    for (const auto& one : whole) models.push_back(model_json(one));
    print_json({{"model", subject.name},
                {"parameters", subject.parameters},
                {"setting",
                 {{"batch", setting.batch},
                  {"hidden", setting.hidden},
                  {"heads", setting.heads},
                  {"tensor_parallel", setting.tensor_parallel},
                  {"bytes", setting.bytes},
                  {"softmax_share", setting.softmax_share}}},
                {"formulas", formulas},
                {"rows", rows},
                {"whole_model", models}});
}

}  // namespace
}  // namespace cost_command

void add_cost(CLI::App& app, Context& context) {
    using namespace cost_command;
    auto* command = app.add_subcommand("cost", "What mixers cost: the paper's formulas beside what is measured here");
    auto options = std::make_shared<Options>();
    add_option(*command, "model", options->models, "A checkpoint or run whose sizes are taken; with --latency several");
    add_option(*command, "--preset", options->preset, "Sizes by name instead (headscope list presets)");
    add_option(*command, "--config", options->config, "The sizes of a config.json instead");
    add_option(*command, "--lengths", options->lengths, "Tokens: 128,512,2048");
    add_option(*command, "--batch", options->batch, "Sequences: 1 (default), 32 with --variants")
        ->check(in_range(1, 1 << 20));
    add_option(*command, "--tensor-parallel", options->tensor_parallel, "t of the formulas")
        ->check(in_range(1, 1 << 20));
    add_option(*command, "--bytes", options->bytes, "Of a number: 2 (default), 4 beside measured ones")
        ->check(in_range(1, 16));
    add_option(*command, "--softmax-share", options->softmax_share, "s of the formulas: softmax chunks of NAtS-L")
        ->check(in_range(0.0, 1.0));
    add_option(*command, "--mixers", options->mixers, "Some of headscope list mixers")->delimiter(',');
    add_flag(*command, "--measure", options->measure, "Count what runs here, on stacks of two layers of each mixer");
    add_flag(*command, "--latency", options->latency,
             "Time models instead: to read so many tokens, and to say one more behind them");
    add_flag(*command, "--variants", options->variants,
             "The variants of multi-head attention instead: weights and memory at these sizes");
    add_option(*command, "--length", options->length, "Tokens of a text, of --variants")->check(in_range(1, 1 << 24));
    add_flag(*command, "--embeddings", options->embeddings, "Parameters of hash embeddings instead, of these sizes:");
    add_option(*command, "--hidden", options->hidden, "Numbers of a vector")->check(in_range(1, 1 << 24));
    add_option(*command, "--rows", options->rows, "Of a table")->check(in_range(1, 1 << 30));
    add_option(*command, "--bits", options->bits, "Of a hash")->check(in_range(1, 1 << 20));
    add_option(*command, "--group-bits", options->group_bits, "Of a hash's groups that have a code word each")
        ->check(in_range(1, 24));
    add_option(*command, "--seed", options->seed, "Of the tokens that --latency reads");
    add_option(*command, "-o,--output", options->output,
               "The numbers as CSV; with --latency .evaluation.h5, .csv or .json");
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback([&context, options, command] {
        options->given = given_options(*command);
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
