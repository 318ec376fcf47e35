// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/loading.h"
#include "app/commands/option_use.h"
#include "app/commands/options.h"
#include "core/analysis/input.h"
#include "core/ask/edits/intervention_file.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/model/generate/beam_search.h"
#include "core/model/generate/generate.h"
#include "core/model/load/memory.h"
#include "core/model/load/open_checkpoint.h"
#include "core/model/model.h"
#include "core/model/residual.h"
#include "core/tokenizer/decode_stream.h"

namespace headscope::app {
namespace generate_command {
namespace {

struct Options {
    std::string model, adapter, prompt, first_token, interventions, dtype = "float32", weights = "auto", device = "cpu",
                                                                    kernels = "auto";
    model::GenerateOptions choice;
    std::int64_t beams = 0;          ///< 0: as the model's files say
    std::vector<std::string> given;  ///< the options of this call
    int threads = 0;
    bool json = false;
};

/// The id of --first-token: a number, or a token's text.
std::int64_t first_token_of(const std::string& text, const tokenizer::Tokenizer& tokenizer) {
    std::int64_t id = -1;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, id).ptr == end && id >= 0) return id;
    if (const auto found = tokenizer.id_of(text)) return *found;
    throw UsageError("--first-token: a token's id or text is expected; found " + escaped(text));
}

/// The options with what the model's files say where an option is not given.
model::GenerateOptions choice_of(const Options& options, const checkpoint::Checkpoint& checkpoint,
                                 const tokenizer::Tokenizer& tokenizer, bool answers, std::size_t prompt) {
    model::GenerateOptions choice = options.choice;
    const auto given = [&](const char* option) {
        return std::find(options.given.begin(), options.given.end(), option) != options.given.end();
    };
    const bool sampled = choice.temperature > 0;
    choice.settings = model::read_generation_settings(checkpoint, sampled);
    if (!options.first_token.empty()) {
        if (!answers) throw UsageError("--first-token: an encoder-decoder is expected");
        choice.settings.forced_bos = first_token_of(options.first_token, tokenizer.of_target());
    }
    if (!given("--tokens"))
        choice.tokens =
            choice.settings.most_new(answers ? 1 : static_cast<std::int64_t>(prompt)).value_or(choice.tokens);
    if (sampled) {
        if (!given("--top-k")) choice.top_k = choice.settings.top_k.value_or(choice.top_k);
        if (!given("--top-p")) choice.top_p = choice.settings.top_p.value_or(choice.top_p);
        choice.min_p = choice.settings.min_p.value_or(0);
    }
    choice.end_tokens = analysis::ending_tokens(checkpoint, &tokenizer);
    return choice;
}

/// Beams of the answer: --beams, else the files' num_beams; a sampled answer has one.
std::int64_t beams_of(const Options& options, const model::GenerateOptions& choice) {
    if (choice.temperature > 0) return 1;
    return options.beams > 0 ? options.beams : choice.settings.beams.value_or(1);
}

std::vector<std::int64_t> best_of_beams(model::Model& model, std::span<const std::int64_t> prompt,
                                        const model::GenerateOptions& choice, std::int64_t width) {
    model::BeamOptions beams;
    beams.width = width;
    beams.tokens = choice.tokens;
    beams.end_tokens = choice.end_tokens;
    beams.settings = choice.settings;
    beams.beyond_positions = choice.beyond_positions;
    beams.cancellation = choice.cancellation;
    beams.editor = choice.editor;
    model::use_beams_of_files(choice.settings, beams);
    *choice.problems = {};
    if (std::string problem = model::weights_problem(model.report()); !problem.empty())
        choice.problems->push_back(std::move(problem));
    std::vector<std::int64_t> made = model::beam_search(model, prompt, beams).tokens;
    if (choice.on_token)
        for (const std::int64_t token : made) choice.on_token(token);
    return made;
}

/// Text of `added` after `before`, cleaned.
std::string cleaned_text(const tokenizer::Tokenizer& writer, std::vector<std::int32_t> before,
                         const std::vector<std::int64_t>& added) {
    const std::string shown = writer.answer(before);
    before.insert(before.end(), added.begin(), added.end());
    std::string text = writer.answer(before);
    text.erase(text.begin(), std::mismatch(text.begin(), text.end(), shown.begin(), shown.end()).first);
    return text;
}

void run(const Options& options, const Cancellation& cancellation) {
    configure_compute(options.threads, options.kernels, options.device);
    const auto checkpoint = model::open_checkpoint(options.model, options.adapter);
    auto tokenizer = tokenizer_of(*checkpoint);
    if (!tokenizer) tokenizer = load_tokenizer(checkpoint->path());  // throws
    const auto encoding = tokenizer->encode(options.prompt, true, &cancellation);
    if (options.prompt.empty() || encoding.ids.empty())
        throw Error(ErrorCode::usage, "--prompt", "expected a text of at least one token", "found none");
    const std::vector<std::int64_t> prompt(encoding.ids.begin(), encoding.ids.end());
    // Everything that can be refused, before weights are read.
    const auto inspection = model::inspect(*checkpoint);
    // An encoder-decoder answers its prompt, a decoder continues it.
    const bool answers = inspection.config.encoder != nullptr;
    auto choice = choice_of(options, *checkpoint, *tokenizer, answers, prompt.size());
    const std::int64_t beams = beams_of(options, choice);
    model::check_prompt(inspection, prompt, choice);
    ask::InterventionPlan plan;
    if (!options.interventions.empty()) {
        plan = ask::read_interventions(options.interventions, {inspection.config, inspection.sites, tokenizer.get()});
        // The last of the new tokens is not read.
        const auto before = static_cast<std::int64_t>(prompt.size());
        const std::int64_t positions[] = {answers ? std::max(before, choice.tokens) : before + choice.tokens - 1};
        model::check_positions(plan.list, positions);
    }
    const auto precision = options.dtype == "bfloat16" ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    const auto rows = static_cast<double>(prompt.size());
    const double cached = static_cast<double>(beams) * (rows + static_cast<double>(choice.tokens));
    const auto residence = model::choose_residence(
        [&](model::Residence one) { return model::reading_bytes(inspection, rows, cached, precision, one); },
        {precision, model::residence(options.weights), true, "shorten --prompt or --tokens"});
    const auto model = model::Model::build(*checkpoint, precision, nullptr, &cancellation, residence);
    choice.cancellation = &cancellation;
    plan.read_values(*model, &cancellation);
    model::Interventions edits(plan.list, model->config(), model->sites());
    if (!edits.empty()) choice.editor = &edits;
    std::vector<std::string> problems;
    choice.problems = &problems;
    const std::vector<std::int32_t> start{static_cast<std::int32_t>(model->config().decoder_start)};
    const tokenizer::Tokenizer& writer = answers ? tokenizer->of_target() : *tokenizer;
    tokenizer::DecodeStream stream(writer, answers ? start : encoding.ids, true);
    // A space may go when its next token comes: cleaned text is printed at the end.
    const bool streams = !options.json && !writer.cleans_answers();
    if (streams) {
        choice.on_token = [&, first = true](std::int64_t token) mutable {
            if (first && !answers) print(options.prompt);  // not before the model has taken it
            first = false;
            print_made_text(stream.add(static_cast<std::int32_t>(token)));
        };
    }
    const auto added =
        beams > 1 ? best_of_beams(*model, prompt, choice, beams) : model::generate(*model, prompt, choice);
    if (options.json) {
        const std::vector<std::int32_t> ids(added.begin(), added.end());
        print_json({{"prompt_ids", prompt}, {"ids", added}, {"text", writer.answer(ids)}, {"problems", problems}});
        return;
    }
    if (streams) {
        print_made_text(stream.finish() + "\n");
    } else {
        if (!answers) print(options.prompt);
        print_made_text(cleaned_text(writer, answers ? start : encoding.ids, added) + "\n");
    }
    for (const std::string& problem : problems) std::fprintf(stderr, "headscope: %s\n", problem.c_str());
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
    add_option(*command, "--tokens", options->choice.tokens,
               "Limit of new tokens; default: max_new_tokens or max_length of the model's files, or 100")
        ->check(in_range(1, 1 << 20));
    add_option(*command, "--first-token", options->first_token,
               "The first token of an encoder-decoder's answer, by its id or text: a target language such as fra_Latn");
    add_option(*command, "--interventions", options->interventions, "Edits of every step, a TOML file");
    add_option(*command, "--beams", options->beams, "Beams of the search; else num_beams of the model's files, or 1")
        ->check(in_range<std::int64_t>(1, 1024));
    add_option(*command, "--temperature", options->choice.temperature, "0: greedy")->check(in_range(0.0, 100.0));
    add_option(*command, "--top-k", options->choice.top_k,
               "Sample from the k likeliest, 0: all; else top_k of the model's files")
        ->check(CLI::NonNegativeNumber);
    add_option(*command, "--top-p", options->choice.top_p,
               "Sample from the likeliest that reach p; else top_p of the model's files")
        ->check(in_range(1e-9, 1.0));
    add_option(*command, "--seed", options->choice.seed, "Of the sampling");
    add_option(*command, "--dtype", options->dtype, "float32 or bfloat16")->check(one_of({"float32", "bfloat16"}));
    add_option(*command, "--weights", options->weights, model::kResidenceHelp)
        ->check(one_of(model::residence_choices()));
    add_device_option(*command, options->device);
    add_option(*command, "--threads", options->threads, "0: all processors")->check(in_range(0, 4096));
    add_option(*command, "--kernels", options->kernels, "auto, reference or one of headscope list kernels");
    add_flag(*command, "--beyond-positions", options->choice.beyond_positions, "Go on past the trained positions");
    add_flag(*command, "--json", options->json, "One JSON document");
    command->callback([&context, options, command] {
        const bool sampled = options->choice.temperature > 0;
        options->given = given_options(*command);
        check_options("generate", options->given, {sampled ? "a --temperature above 0" : "greedy decoding"});
        context.command = [&context, options] { run(*options, context.cancellation); };
    });
}

}  // namespace headscope::app
