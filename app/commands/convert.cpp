// SPDX-License-Identifier: GPL-3.0-or-later
#include <memory>

#include <CLI/CLI.hpp>

#include "app/console.h"
#include "app/context.h"
#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/save.h"

namespace headscope::app {
namespace {

struct ConvertOptions {
    std::string source, destination, type = "stored";
};

checkpoint::LoadAs type_of(const std::string& name) {
    if (name == "stored") return checkpoint::LoadAs::stored;
    if (name == "bfloat16") return checkpoint::LoadAs::bfloat16;
    return name == "float16" ? checkpoint::LoadAs::float16 : checkpoint::LoadAs::float32;
}

}  // namespace

void add_convert(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("convert", "Write a checkpoint as safetensors in another type");
    auto options = std::make_shared<ConvertOptions>();
    command->add_option("source", options->source, "A checkpoint")->required();
    command->add_option("destination", options->destination, "A new folder")->required();
    command
        ->add_option("--dtype", options->type,
                     "float32, bfloat16 or float16; default: as stored. Integers stay as they are")
        ->check(CLI::IsMember({"stored", "float32", "bfloat16", "float16"}));
    command->callback([&context, options] {
        context.command = [&context, options] {
            const auto source = checkpoint::Checkpoint::open(options->source);
            ConsoleProgress progress;
            checkpoint::convert(*source, options->destination, type_of(options->type), progress, context.cancellation);
            print(escaped(options->destination) + ": " + std::to_string(source->tensors().size()) + " tensors, " +
                  (options->type == "stored" ? "as they were" : options->type) + "\n");
        };
    });
}

}  // namespace headscope::app
