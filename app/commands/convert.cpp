// SPDX-License-Identifier: GPL-3.0-or-later
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "app/commands/analyze/layer_list.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/save.h"
#include "core/model/fresh/swap.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"

namespace headscope::app {
namespace convert_command {
namespace {

struct ConvertOptions {
    std::string source, adapter, destination, type = "stored", mixer_options;
    std::vector<std::string> swaps;
    std::uint64_t seed = 0;
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
        model::convert_swapped(source, swap, options.seed, options.destination, type, progress, cancellation);
    if (fresh.empty()) return "with other mixers; every tensor is the source's";
    return "with other mixers; fresh are " + list_text(fresh);
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
    auto* command =
        app.add_subcommand("convert", "Write a checkpoint as safetensors in another type, or with other mixers");
    auto options = std::make_shared<ConvertOptions>();
    add_option(*command, "source", options->source, "A checkpoint")->required();
    add_option(*command, "destination", options->destination, "A new folder")->required();
    add_option(*command, "--adapter", options->adapter,
               "A folder with a LoRA adapter (PEFT): what is written is merged");
    add_option(*command, "--dtype", options->type,
               "float32, bfloat16 or float16; default: as stored. Integers stay as they are")
        ->check(one_of({"stored", "float32", "bfloat16", "float16"}));
    add_option(*command, "--swap", options->swaps,
               "LAYERS=MIXER: other mixers for some layers, as 0,2-4=mlp or all=approximate (headscope list "
               "mixers); weights are kept where shapes match. Llama's, Qwen's and native models")
        ->allow_extra_args(false);
    add_option(*command, "--mixer-options", options->mixer_options,
               R"(Options of mixers, as {"approximate": {"second_order": "diagonal"}})");
    add_option(*command, "--seed", options->seed, "Of the weights that a swapped mixer has and the checkpoint lacks");
    command->callback([&context, options, command] {
        check_options("convert", given_options(*command), {options->swaps.empty() ? "a change of type" : "--swap"});
        context.command = [&context, options] {
            const auto source = model::open_checkpoint(options->source, options->adapter);
            ConsoleProgress progress;
            if (!options->swaps.empty()) {
                const std::string made =
                    swap(*options, *source, type_of(options->type), progress, context.cancellation);
                print(escaped(options->destination) + ": " + made + "\n");
                return;
            }
            checkpoint::convert(*source, options->destination, type_of(options->type), progress, context.cancellation);
            print(escaped(options->destination) + ": " + std::to_string(source->tensors().size()) + " tensors, " +
                  (options->type == "stored" ? "as they were" : options->type) +
                  (source->adapter() ? ", " + std::to_string(source->adapter()->merged().size()) + " merged" : "") +
                  "\n");
        };
    });
}

}  // namespace headscope::app
