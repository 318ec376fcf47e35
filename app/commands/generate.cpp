// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/generate.h"
#include "core/model/memory.h"
#include "core/model/model.h"
#include "core/model/open_checkpoint.h"
#include "core/tokenizer/decode_stream.h"

namespace headscope::app {
namespace generate_command {
namespace {

struct Options {
    std::string model, adapter, prompt, dtype = "float32", kernels = "auto";
    model::GenerateOptions choice;
    int threads = 0;
    bool json = false;
};

void run(const Options& options, const Cancellation& cancellation) {
    configure_compute(options.threads, options.kernels, "cpu");
    const auto checkpoint = model::open_checkpoint(options.model, options.adapter);
    const auto tokenizer = load_tokenizer(checkpoint->path());
    const auto encoding = tokenizer->encode(options.prompt, true, &cancellation);
    if (options.prompt.empty() || encoding.ids.empty())
        throw Error(ErrorCode::usage, "--prompt", "expected a text of at least one token", "found none");
    const std::vector<std::int64_t> prompt(encoding.ids.begin(), encoding.ids.end());
    const model::Inspection inspection = model::inspect(*checkpoint);
    model::check_prompt(inspection, prompt, options.choice);  // before weights are read
    const auto precision = options.dtype == "bfloat16" ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    const auto rows = static_cast<double>(prompt.size());
    model::expect_memory_for(
        [&](checkpoint::LoadAs as) {
            return model::reading_bytes(inspection, rows, rows + static_cast<double>(options.choice.tokens), as);
        },
        precision, {});
    const auto model = model::Model::build(*checkpoint, precision, nullptr, &cancellation);
    auto choice = options.choice;
    choice.end_tokens = model::end_tokens(*checkpoint);
    if (choice.end_tokens.empty())
        if (const auto last = analysis::ending_token(*checkpoint, *tokenizer)) choice.end_tokens = {*last};
    choice.cancellation = &cancellation;
    std::vector<std::string> problems;
    choice.problems = &problems;
    // An encoder-decoder answers its prompt, others go on with it.
    const bool answers = model->config().encoder != nullptr;
    const std::vector<std::int32_t> start{static_cast<std::int32_t>(model->config().decoder_start)};
    const tokenizer::Tokenizer& writer = answers ? tokenizer->of_target() : *tokenizer;
    tokenizer::DecodeStream stream(writer, answers ? start : encoding.ids, true);
    if (!options.json) {
        choice.on_token = [&, first = true](std::int64_t token) mutable {
            if (first && !answers) print(options.prompt);  // not before the model has taken it
            first = false;
            print_made_text(stream.add(static_cast<std::int32_t>(token)));
        };
    }
    const auto added = model::generate(*model, prompt, choice);
    if (options.json) {
        const std::vector<std::int32_t> ids(added.begin(), added.end());
        print_json(
            {{"prompt_ids", prompt}, {"ids", added}, {"text", writer.decode(ids, true)}, {"problems", problems}});
    } else {
        print_made_text(stream.finish() + "\n");
        for (const std::string& problem : problems) std::fprintf(stderr, "headscope: %s\n", problem.c_str());
    }
}

}  // namespace
}  // namespace generate_command

void add_generate(CLI::App& app, Context& context) {
    using namespace generate_command;
    auto* command =
        app.add_subcommand("generate", "Continue a text, or answer it with an encoder-decoder, greedy or sampled");
    auto options = std::make_shared<Options>();
    add_option(*command, "model", options->model, "A checkpoint")->required();
    add_option(*command, "--adapter", options->adapter, "A folder with a LoRA adapter (PEFT) to merge into the model");
    add_option(*command, "--prompt", options->prompt, "The text to continue")->required();
    add_option(*command, "--tokens", options->choice.tokens, "At most so many new tokens")->check(in_range(1, 1 << 20));
    add_option(*command, "--temperature", options->choice.temperature, "0: greedy")->check(in_range(0.0, 100.0));
    add_option(*command, "--top-k", options->choice.top_k, "Sample from the k likeliest; 0: all")
        ->check(CLI::NonNegativeNumber);
    add_option(*command, "--top-p", options->choice.top_p, "Sample from the likeliest that reach p")
        ->check(in_range(1e-9, 1.0));
    add_option(*command, "--seed", options->choice.seed, "Of the sampling");
    add_option(*command, "--dtype", options->dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_option(*command, "--kernels", options->kernels, "auto, reference or one of headscope list kernels");
    add_flag(*command, "--beyond-positions", options->choice.beyond_positions, "Go on past the trained positions");
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback(
        [&context, options] { context.command = [&context, options] { run(*options, context.cancellation); }; });
}

}  // namespace headscope::app
