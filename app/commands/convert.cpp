// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/convert.h"
#include "core/checkpoint/save.h"
#include "core/model/fresh/average.h"
#include "core/model/fresh/swap.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/run/run_folder.h"
#include "core/training/trainer/snapshots.h"

namespace headscope::app {
namespace convert_command {
namespace {

namespace fs = std::filesystem;

constexpr int kMostPaths = 10'000;

struct ConvertOptions {
    std::vector<std::string> paths;  ///< sources, then the destination
    std::string adapter, type = "stored", mixer_options;
    std::vector<std::string> swaps;
    bool average = false, last_given = false;
    std::int64_t last = 5;
    std::uint64_t seed = 0;

    const std::string& source() const { return paths.front(); }
    const std::string& destination() const { return paths.back(); }
};

/// "1,3-5=mlp": these layers (counted from 0), or "all", get this mixer.
void add_swap(std::map<int, std::string>& mixers, const std::string& text, std::int64_t layers) {
    const std::size_t equal = text.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == text.size())
        throw UsageError("--swap: layers and a mixer like 0,2-4=non_approximate are expected; found " + escaped(text));
    const std::string which = text.substr(0, equal), mixer = text.substr(equal + 1);
    if (which == "all") {
        for (int layer = 0; layer < layers; ++layer) mixers[layer] = mixer;
        return;
    }
    const std::set<int> chosen = parse_layers("--swap", which);
    check_layers("--swap", chosen, layers);
    for (const int layer : chosen) mixers[layer] = mixer;
}

/// Says what was made.
std::string swap(const ConvertOptions& options, const checkpoint::Checkpoint& source, checkpoint::LoadAs type,
                 ConsoleProgress& progress, const Cancellation& cancellation) {
    model::MixerSwap swap({}, options.mixer_options);
    const std::int64_t layers = model::inspect(source).config.all_layers();
    for (const std::string& text : options.swaps) add_swap(swap.layers, text, layers);
    const auto fresh =
        model::convert_swapped(source, swap, options.seed, options.destination(), type, progress, cancellation);
    if (fresh.empty()) return "with other mixers; every tensor is the source's";
    return "with other mixers; fresh are " + list_text(fresh);
}

/// The last snapshots of a run, or the checkpoint that `path` is.
std::vector<fs::path> snapshots_of(const fs::path& path, std::int64_t last) {
    const training::RunFolder run{path};
    if (!run.exists()) return {path};
    return training::last_snapshots(run, last);
}

/// Says whose mean was written.
std::string average(const ConvertOptions& options, checkpoint::LoadAs type, ConsoleProgress& progress,
                    const Cancellation& cancellation) {
    std::vector<std::shared_ptr<const checkpoint::Checkpoint>> files;
    std::vector<std::string> names;
    const bool runs = std::any_of(options.paths.begin(), options.paths.end() - 1,
                                  [](const std::string& path) { return training::RunFolder{path}.exists(); });
    if (options.last_given && !runs) throw UsageError("--last: a run is expected with it; found checkpoints alone");
    for (std::size_t i = 0; i + 1 < options.paths.size(); ++i) {
        for (const fs::path& folder : snapshots_of(options.paths[i], options.last)) {
            files.push_back(model::open_checkpoint(folder, ""));
            names.push_back(escaped(files.back()->display_name()));
        }
    }
    model::convert_average(files, options.destination(), type, progress, cancellation);
    return "mean of " + std::to_string(files.size()) + " checkpoints: " + list_text(names, names.size());
}

/// The type of the tensors that are written, in words.
std::string written_words(const ConvertOptions& options, const checkpoint::Checkpoint& source) {
    if (options.type != "stored") return options.type;
    const bool stored = checkpoint::written_as(source, checkpoint::LoadAs::stored) == checkpoint::LoadAs::stored;
    return stored ? "as they were" : "float32 (stored as " + source.packed_format() + ")";
}

checkpoint::LoadAs type_of(const std::string& name) {
    if (name == "stored") return checkpoint::LoadAs::stored;
    if (name == "bfloat16") return checkpoint::LoadAs::bfloat16;
    return name == "float16" ? checkpoint::LoadAs::float16 : checkpoint::LoadAs::float32;
}

}  // namespace
}  // namespace convert_command

void add_convert(CLI::App& app, Context& context) {
    using namespace convert_command;
    auto* command = app.add_subcommand(
        "convert", "Write a checkpoint as safetensors in another type, with other mixers, or as a mean of several");
    auto options = std::make_shared<ConvertOptions>();
    add_option(*command, "paths", options->paths,
               "A checkpoint, then a new folder; with --average runs or checkpoints, then a new folder")
        ->required()
        ->expected(2, kMostPaths);
    add_flag(*command, "--average", options->average,
             "Write the mean of checkpoints of one model, in float64, rounded to the stored type; of a run that of "
             "its last snapshots");
    add_option(*command, "--last", options->last, "Snapshots of a run that --average takes")
        ->check(in_range<std::int64_t>(1, kMostPaths));
    add_option(*command, "--adapter", options->adapter,
               "A folder with a LoRA adapter (PEFT): what is written is merged");
    add_option(*command, "--dtype", options->type,
               "float32, bfloat16 or float16; default: as stored, of quantized tensors float32. Integers stay as they "
               "are")
        ->check(one_of({"stored", "float32", "bfloat16", "float16"}));
    add_option(*command, "--swap", options->swaps,
               "LAYERS=MIXER: other mixers for some layers, as 0,2-4=mlp or all=approximate (headscope list "
               "mixers); weights are kept where shapes match. Llama's, Qwen's and native models")
        ->allow_extra_args(false);
    add_option(*command, "--mixer-options", options->mixer_options,
               R"(Options of mixers, as {"approximate": {"second_order": "diagonal"}})");
    add_option(*command, "--seed", options->seed, "Of the weights that a swapped mixer has and the checkpoint lacks");
    command->callback([&context, options, command] {
        std::vector<std::string> kinds;
        if (options->average) kinds.emplace_back("--average");
        if (!options->swaps.empty()) kinds.emplace_back("--swap");
        if (kinds.size() > 1) throw UsageError("--average excludes --swap");
        options->last_given = command->count("--last") > 0;
        if (kinds.empty()) kinds.emplace_back("a change of type");
        check_options("convert", given_options(*command), kinds);
        if (!options->average && options->paths.size() > 2)
            throw UsageError(
                "convert: a source and a destination are expected (several sources need --average); found " +
                std::to_string(options->paths.size()) + " paths");
        context.command = [&context, options] {
            ConsoleProgress progress;
            if (options->average) {
                const std::string made = average(*options, type_of(options->type), progress, context.cancellation);
                print(escaped(options->destination()) + ": " + made + "\n");
                return;
            }
            const auto source = model::open_checkpoint(options->source(), options->adapter);
            if (!options->swaps.empty()) {
                const std::string made =
                    swap(*options, *source, type_of(options->type), progress, context.cancellation);
                print(escaped(options->destination()) + ": " + made + "\n");
                return;
            }
            checkpoint::convert(*source, options->destination(), type_of(options->type), progress,
                                context.cancellation);
            print(escaped(options->destination()) + ": " + std::to_string(source->tensors().size()) + " tensors, " +
                  written_words(*options, *source) +
                  (source->adapter() ? ", " + std::to_string(source->adapter()->merged().size()) + " merged" : "") +
                  "\n");
        };
    });
}

}  // namespace headscope::app
