// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/cost/cost_parts.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/process/free_memory.h"
#include "core/cost/measure.h"
#include "core/model/load/memory.h"
#include "core/model/load/model_device.h"
#include "core/model/load/native_config.h"
#include "core/model/model.h"
#include "kernels/backend.h"

namespace headscope::app {
namespace cost_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json formulas_json(const cost::MixerCost& cost) {
    json formulas = {{"time", cost.time.text()},           {"prefill_flops", cost.prefill.text()},
                     {"decode_flops", cost.decode.text()}, {"activation_bytes", cost.activation.text()},
                     {"cache_bytes", cost.cache.text()},   {"parameters", cost.parameters.text()}};
    if (cost.precomputed_prefill) formulas["precomputed_prefill_flops"] = cost.precomputed_prefill->text();
    if (cost.precomputed_decode) formulas["precomputed_decode_flops"] = cost.precomputed_decode->text();
    if (cost.scores_before) formulas["scores_before_saving"] = cost.scores_before->text();
    if (cost.prefetch) formulas["prefetch_cache_bytes"] = cost.prefetch->text();
    const auto normalizers = cost::normalizer_costs(*mixers::find_type(cost.mixer));
    for (const cost::NormalizerCost& one : normalizers)
        formulas["normalizers"].push_back({{"name", one.name}, {"time", one.time}, {"flash", one.flash}});
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
    if (row.paper.scores_before) paper["scores_before_saving"] = *row.paper.scores_before;
    if (row.paper.prefetch) paper["prefetch_cache_bytes"] = *row.paper.prefetch;
    json one = {{"mixer", row.mixer}, {"length", row.length}, {"paper", paper}};
    if (row.measured) {
        one["measured"] = {{"prefill_flops", number(row.measured->prefill_flops)},
                           {"decode_flops", number(row.measured->decode_flops)},
                           {"activation_bytes", number(row.measured->activation_bytes)},
                           {"cache_bytes", number(row.measured->cache_bytes)},
                           {"prefill_seconds", number(row.measured->prefill_seconds)},
                           {"decode_seconds", number(row.measured->decode_seconds)},
                           {"guide_flops", number(row.guide_flops.value_or(0))}};
    }
    return one;
}

json model_json(const cost::MeasuredModel& model) {
    json layers = json::array();
    for (const auto& layer : model.layers) {
        layers.push_back({{"mixer", layer.mixer},
                          {"prefill_flops", number(layer.prefill_flops)},
                          {"decode_flops", number(layer.decode_flops)},
                          {"activation_bytes", number(layer.activation_bytes)},
                          {"cache_bytes", number(layer.cache_bytes)},
                          {"prefill_seconds", number(layer.prefill_seconds)},
                          {"decode_seconds", number(layer.decode_seconds)}});
    }
    return {{"length", model.length},
            {"batch", model.batch},
            {"type", model.type},
            {"layers", layers},
            {"guide_flops", number(model.guide_flops)},
            {"forward_flops", number(model.forward_flops)},
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
        rows.push_back({cost.title, "O(" + cost.time.pretty() + ")", cost.prefill.pretty(), cost.decode.pretty(),
                        cost.activation.pretty(), cost.cache.pretty(), cost.parameters.pretty()});
        if (cost.precomputed_prefill)
            rows.push_back({"  maps computed before", "", cost.precomputed_prefill->pretty(),
                            cost.precomputed_decode->pretty(), "", "", ""});
        if (cost.scores_before)
            rows.push_back({"  scores before, l layers", "saves " + cost.scores_before->pretty(), "", "", "", "", ""});
        if (row.paper.prefetch)
            rows.push_back({"  maps of D steps before", "", "", "", "", "+ " + cost.prefetch->pretty(), ""});
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

/// Table 2 of "Lazy Attention": a row a mixer and value of its option.
void print_normalizers(const cost::CostTable& table) {
    std::vector<std::vector<std::string>> rows;
    std::string last;
    for (const auto& row : table.rows) {
        if (row.mixer == last) continue;
        last = row.mixer;
        for (const cost::NormalizerCost& one : cost::normalizer_costs(*mixers::find_type(row.mixer)))
            rows.push_back(
                {cost::mixer_cost(row.mixer).title, one.name, "O(" + std::string(one.time) + ")", one.flash});
    }
    if (!rows.empty())
        print("Normalizers of n scores a row:\n" + format_table({"mixer", "normaliser", "time", "flash"}, rows) + "\n");
}

void print_numbers(const cost::CostTable& table, bool measured) {
    std::vector<std::string> header{"mixer", "length"};
    for (const char* what : {"prefill", "decode", "activation", "cache"}) {
        header.emplace_back(what);
        if (measured) header.emplace_back("measured");
    }
    if (measured) header.insert(header.end(), {"guides, once", "time", "time, decode"});
    header.emplace_back("parameters");
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : table.rows) {
        std::vector<std::string> cells{cost::mixer_cost(row.mixer).title, std::to_string(row.length)};
        const auto add = [&](std::string paper, std::string here) {
            cells.push_back(std::move(paper));
            if (measured) cells.push_back(row.measured ? std::move(here) : "");
        };
        const cost::MeasuredMixer here = row.measured.value_or(cost::MeasuredMixer{});
        add(flops_text(row.paper.prefill), flops_text(here.prefill_flops));
        add(flops_text(row.paper.decode), flops_text(here.decode_flops));
        add(bytes_text(row.paper.activation), bytes_text(here.activation_bytes));
        add(bytes_text(row.paper.cache + row.paper.prefetch.value_or(0)), bytes_text(here.cache_bytes));
        if (measured) {
            cells.push_back(row.guide_flops.value_or(0) > 0 ? flops_text(*row.guide_flops) : "");
            cells.push_back(row.measured ? seconds_text(here.prefill_seconds) : "");
            cells.push_back(row.measured ? seconds_text(here.decode_seconds) : "");
        }
        cells.push_back(flops_text(row.paper.parameters));
        rows.push_back(std::move(cells));
    }
    const auto& s = table.setting;
    print("One layer's mixer without its output projection: B = " + std::to_string(s.batch) +
          ", d = " + std::to_string(s.hidden) + ", h = " + std::to_string(s.heads) +
          ", t = " + std::to_string(s.tensor_parallel) + ", " + std::to_string(s.bytes) + " bytes a number.\n" +
          (measured ? "Measured on " + escaped(table.device) + ", kernels " + table.kernels + ".\n" : "") +
          format_table(header, rows) + "\n");
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

/// One line on standard error; none where the whole model was measured at all lengths.
void report_left_out(const std::vector<std::int64_t>& lengths, std::int64_t positions) {
    if (lengths.empty()) return;
    std::string list;
    for (const std::int64_t length : lengths) list += (list.empty() ? "" : ", ") + std::to_string(length);
    std::fprintf(stderr,
                 "headscope: the whole model is not measured at %s tokens: with the token that is decoded they exceed "
                 "its %lld positions\n",
                 list.c_str(), static_cast<long long>(positions));
}

void run(const Options& options, const Cancellation& cancellation) {
    if (int(!options.models.empty()) + int(!options.preset.empty()) + int(!options.config.empty()) > 1 ||
        (options.models.size() > 1 && !options.latency))
        throw UsageError("--preset: expected a model, a preset or a configuration; found more than one");
    if (int(options.latency) + int(options.variants) + int(options.embeddings) > 1)
        throw UsageError("--latency, --variants and --embeddings exclude each other");
    if ((options.variants || options.embeddings) &&
        (options.measure || !options.mixers.empty() || !options.output.empty()))
        throw UsageError("--variants and --embeddings exclude --measure, --mixers and -o");
    check_options("cost", options.given,
                  {options.latency      ? "--latency"
                   : options.variants   ? "--variants"
                   : options.embeddings ? "--embeddings"
                   : options.measure    ? "--measure"
                                        : "formulas"});
    if (options.latency) return run_latency(options, cancellation);
    if (options.variants) return run_variants(options);
    if (options.embeddings) return run_embeddings(options);
    configure_compute(options.threads, "auto", options.device);
    const Subject subject = subject_of(options);
    if (!options.output.empty())
        OutputFile::check_target(options.output,
                                 subject.checkpoint ? files_of(*subject.checkpoint) : std::vector<fs::path>{});
    const std::vector<std::int64_t> lengths = parse_lengths("--lengths", options.lengths);
    cost::CostSetting setting;
    setting.batch = options.batch_or(1);
    setting.hidden = subject.config.hidden;
    setting.heads = subject.config.heads;
    setting.head_size = subject.config.head_size;
    setting.options = subject.config.mixer_options;
    setting.softmax_share = options.softmax_share;
    setting.layers = subject.config.layers;
    setting.prefetch = options.prefetch;
    setting.tensor_parallel = options.tensor_parallel;
    setting.bytes = options.bytes > 0 ? options.bytes : options.measure ? 4 : 2;
    cost::CostTable table = cost::paper_table(setting, lengths, options.mixers);
    std::vector<cost::MeasuredModel> whole;
    std::vector<std::int64_t> left_out;  // the model has no positions for them
    if (options.measure) {
        ConsoleProgress progress;
        // Formulas know any family by its sizes; what is measured are stacks of ours.
        cost::measure_table(table, model::native_json(subject.config).dump(), progress, cancellation,
                            model::model_device());
        table.device = kernels::chosen_device();
        table.kernels = kernels::chosen_kernels("float32");
        if (subject.checkpoint) {
            const model::Inspection inspection = model::inspect(*subject.checkpoint);
            expect_memory("weights and gradients in float32",
                          2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32), {}, "");
            model::expect_device_memory("weights and gradients",
                                        2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32), "");
            const auto trainable =
                model::Trainable::open(*subject.checkpoint, at::kFloat, {}, 0, nullptr, &cancellation);
            trainable->to(model::model_device());
            for (const std::int64_t length : lengths) {
                const std::int64_t most = subject.config.max_positions;
                if (most > 0 && length + 1 > most) {  // one more token is decoded
                    left_out.push_back(length);
                    continue;
                }
                cost::MeasureOptions one;
                one.batch = options.batch_or(1);
                one.length = length;
                one.cancellation = &cancellation;
                whole.push_back(cost::measure(*trainable, one));
            }
        }
        finish_progress_line();
        report_left_out(left_out, subject.config.max_positions);
    }
    if (!options.output.empty()) {
        write_whole_file(options.output, cost::cost_csv(table), "table");
    }
    if (!options.json) {
        print_formulas(table);
        print_normalizers(table);
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
    json sizes = {{"batch", setting.batch},   {"hidden", setting.hidden},
                  {"heads", setting.heads},   {"tensor_parallel", setting.tensor_parallel},
                  {"bytes", setting.bytes},   {"softmax_share", setting.softmax_share},
                  {"layers", setting.layers}, {"prefetch", setting.prefetch}};
    if (options.measure) {
        model::store_device(sizes, "float32");
        sizes["threads"] = compute_threads();
    }
    print_json({{"model", subject.name},
                {"parameters", subject.parameters},
                {"setting", sizes},
                {"formulas", formulas},
                {"rows", rows},
                {"whole_model", models},
                {"whole_model_left_out", left_out}});
}

}  // namespace
}  // namespace cost_command

void add_cost(CLI::App& app, Context& context) {
    using namespace cost_command;
    auto* command = app.add_subcommand("cost", "Cost of mixers: the papers' formulas, and values measured here");
    auto options = std::make_shared<Options>();
    add_option(*command, "model", options->models, "A checkpoint or run whose sizes are taken; with --latency several");
    add_option(*command, "--preset", options->preset, "Sizes by name instead (headscope list presets)");
    add_option(*command, "--config", options->config, "The sizes of a config.json instead");
    add_option(*command, "--lengths", options->lengths, "Tokens: 128,512,2048");
    add_option(*command, "--batch", options->batch, "Sequences: 1 (default), 32 with --variants")
        ->check(in_range(1, 1 << 20));
    add_option(*command, "--tensor-parallel", options->tensor_parallel, "t of the formulas")
        ->check(in_range(1, 1 << 20));
    add_option(*command, "--bytes", options->bytes, "Of a number: 2 (default), 4 with measured ones")
        ->check(in_range(1, 16));
    add_option(*command, "--softmax-share", options->softmax_share, "s of the formulas: softmax chunks of NAtS-L")
        ->check(in_range(0.0, 1.0));
    add_option(*command, "--prefetch", options->prefetch,
               "Decoding steps whose maps RndEmbQK and FixedSeqQK compute before: adds their cache")
        ->check(in_range(0, 1 << 20));
    add_option(*command, "--mixers", options->mixers, "Some of headscope list mixers")->delimiter(',');
    add_flag(*command, "--measure", options->measure, "Count what runs here, on stacks of two layers of each mixer");
    add_flag(*command, "--latency", options->latency,
             "Measure latency instead: prefill of N tokens, and one decode step");
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
    add_device_option(*command, options->device);
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback([&context, options, command] {
        options->given = given_options(*command);
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
