// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/cost/cost_parts.h"
#include "app/commands/evaluate/evaluation_output.h"
#include "app/commands/loading.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/machine/processors.h"
#include "core/base/process/free_memory.h"
#include "core/cost/latency.h"
#include "core/evaluation/describe.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "kernels/backend.h"

namespace headscope::app::cost_command {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

}  // namespace

void run_latency(const Options& options, const Cancellation& cancellation) {
    if (options.models.empty()) throw UsageError("--latency needs a model");
    if (options.measure || !options.mixers.empty()) throw UsageError("--latency excludes --measure and --mixers");
    if (!options.output.empty()) check_evaluation_name(options.output);
    configure_compute(options.threads, "auto", options.device);
    std::vector<std::shared_ptr<const checkpoint::Checkpoint>> checkpoints;
    std::vector<fs::path> inputs;
    for (const std::string& path : options.models) {
        checkpoints.push_back(checkpoint::Checkpoint::open(evaluation::checkpoint_in(path)));
        const std::vector<fs::path> files = files_of(*checkpoints.back());
        inputs.insert(inputs.end(), files.begin(), files.end());
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
          {"device", kernels::chosen_device()},
          {"kernels", kernels::chosen_backend()},
          {"load", number(load)},
          {"left_out", left_out}}}}.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!options.output.empty()) write_evaluation_as(options.output, evaluation, inputs);
    if (options.json)
        print_json(evaluation_json(evaluation));
    else
        print_latency(latency, names, load, options);
}

}  // namespace headscope::app::cost_command
