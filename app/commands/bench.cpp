// SPDX-License-Identifier: GPL-3.0-or-later
// A diagnostic, left out of --help's list: what measuring costs beside the plain forward pass, in one process and
// paired, so that a machine whose speed drifts gives an honest ratio. tests/bench/model_ratio.py uses it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include <unistd.h>

#include <ATen/ops/empty.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/options.h"
#include "core/analysis/request.h"
#include "core/base/process/machine.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "kernels/backend.h"

namespace headscope::app {
namespace bench_command {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::string model, device = "cpu", kernels = "auto", dtype = "float32", what = "both";
    std::int64_t length = 2048;
    int repeat = 5, threads = 0;
    bool json = false, beyond = false;
};

double seconds_of(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Ids that repeat nothing in particular and are the same everywhere.
store::SequenceTokens sequence(std::int64_t length, std::int64_t vocabulary) {
    store::SequenceTokens tokens;
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < length; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        tokens.ids.push_back(static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(vocabulary)));
        tokens.pieces.emplace_back("");
        tokens.offsets.push_back({0, 0});
    }
    return tokens;
}

void run(const Options& options, const Cancellation& cancellation) {
    configure_compute(options.threads, options.kernels, options.device);
    const auto checkpoint = checkpoint::Checkpoint::open(options.model);
    const auto precision = options.dtype == "bfloat16" ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    const model::Inspection inspection = model::inspect(*checkpoint);
    model::choose_residence(
        [&](model::Residence one) {
            return model::reading_bytes(inspection, static_cast<double>(options.length), 0, precision, one);
        },
        {precision, model::Residence::float32, false, "shorten --length"});
    const auto model = model::Model::build(*checkpoint, precision, nullptr, &cancellation);
    analysis::AnalysisRequest request;
    request.sequences.push_back(sequence(options.length, model->config().source_vocabulary()));
    if (model->config().encoder) request.targets = request.sequences;
    request.beyond_positions = options.beyond;
    request.settings_json = "{}";
    request.config_json = "{}";
    model::Batch batch;
    batch.ids = at::empty({1, options.length}, at::kLong);
    std::copy(request.sequences[0].ids.begin(), request.sequences[0].ids.end(), batch.ids.data_ptr<std::int64_t>());
    if (model->config().encoder) batch.target = batch.ids.clone();
    const fs::path folder = fs::temp_directory_path() / ("headscope-bench-" + std::to_string(getpid()));
    fs::create_directory(folder);
    NoProgress progress;
    const auto plain = [&] {
        model::ForwardOptions forward;
        forward.beyond_positions = options.beyond;
        forward.cancellation = &cancellation;
        const auto hidden = model->forward(batch, forward);
        if (model->causal() && model->has_head()) model->next_token_loss(batch, hidden, {}, &cancellation);
    };
    const auto analyse = [&] {
        analysis::run(*model, request, folder / "bench.headscope.h5", {}, progress, cancellation);
    };
    const bool with_plain = options.what != "analysis", with_analysis = options.what != "plain";
    std::vector<double> plain_seconds, analysis_seconds, ratios;
    double plain_memory = 0;
    try {
        if (with_plain) plain();
        plain_memory = peak_memory();
        if (with_analysis) analyse();
        for (int i = 0; i < options.repeat; ++i) {
            if (with_plain) plain_seconds.push_back(seconds_of(plain));
            if (with_analysis) analysis_seconds.push_back(seconds_of(analyse));
            if (with_plain && with_analysis) ratios.push_back(analysis_seconds.back() / plain_seconds.back());
        }
    } catch (...) {
        fs::remove_all(folder);
        throw;
    }
    fs::remove_all(folder);
    const nlohmann::json document = {{"length", options.length},
                                     {"repeat", options.repeat},
                                     {"threads", compute_threads()},
                                     {"device", kernels::chosen_device()},
                                     {"kernels", kernels::last_backend()},
                                     {"plain_seconds", plain_seconds},
                                     {"analysis_seconds", analysis_seconds},
                                     {"plain_median", median(plain_seconds)},
                                     {"analysis_median", median(analysis_seconds)},
                                     {"ratio_median", median(ratios)},
                                     {"peak_memory_plain", plain_memory},
                                     {"peak_memory", peak_memory()}};
    if (options.json) {
        print_json(document);
        return;
    }
    for (const auto& [key, value] : document.items()) print(key + ": " + value.dump() + "\n");
}

}  // namespace
}  // namespace bench_command

void add_bench(CLI::App& app, Context& context) {
    using namespace bench_command;
    auto* command = app.add_subcommand("bench", "Time the plain forward pass against the analysis, paired");
    command->group("");  // not listed
    auto options = std::make_shared<Options>();
    add_option(*command, "model", options->model, "A checkpoint")->required();
    add_option(*command, "--length", options->length, "Tokens")->check(in_range(1, 1 << 20));
    add_option(*command, "--repeat", options->repeat, "Pairs that count")->check(in_range(1, 1000));
    add_option(*command, "--what", options->what, "both, plain, analysis")
        ->check(one_of({"both", "plain", "analysis"}));
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_device_option(*command, options->device);
    add_option(*command, "--kernels", options->kernels, "As for analyze");
    add_option(*command, "--dtype", options->dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_flag(*command, "--beyond-positions", options->beyond, "As for analyze");
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback(
        [&context, options] { context.command = [&context, options] { run(*options, context.cancellation); }; });
}

}  // namespace headscope::app
