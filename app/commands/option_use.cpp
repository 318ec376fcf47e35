// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/option_use.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "app/commands/ask/ask_tool.h"
#include "app/commands/context.h"
#include "core/ask/options/tool_options.h"
#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/figures/options/option_list.h"

namespace headscope::app {
namespace {

using Names = std::vector<std::string>;

OptionUse of_evaluate() {
    const Names text{"--data", "--tokens", "--batch-tokens"}, items{"--items", "--prompts"},
        files = joined_options(items, {"--data", "--batch-tokens"}),
        made = joined_options(items, {"--sequences", "--seed", "--batch-tokens"}), beams{"--beams", "--length-penalty"};
    return {"evaluate",
            {"model", "--adapter", "--average", "--task", "--length", "--skip", "--variant", "--output", "--dtype",
             "--weights", "--device", "--threads", "--kernels", "--beyond-positions", "--json"},
            {{"windows of text", joined_options(text, {"--stride", "--prefix"})},
             {"perplexity by position", joined_options(text, {"--task-option"})},
             {"generated tasks", {"--sequences", "--seed", "--task-option", "--batch-tokens"}},
             {"RULER's tasks, made", joined_options(items, {"--sequences", "--seed", "--haystack", "--dump"})},
             {"RULER's tasks of --data", joined_options(items, {"--data"})},
             {"lm-eval's tasks", joined_options(items, {"--data", "--shots", "--shots-rule", "--limit", "--bootstrap",
                                                        "--baselines", "--seed", "--task-option", "--batch-tokens"})},
             {"masked, shuffle_random", joined_options(text, {"--seed"})},
             {"classify of --data", files},
             {"classify of generated items", made},
             {"translation of --data", joined_options(files, beams)},
             {"translation of generated items", joined_options(made, beams)},
             {"squad, squad_v2", joined_options(files, {"--task-option"})},
             {"--predictions", {"--predictions", "--data", "--limit", "--items", "--prompts", "--task-option"}},
             {"speed", {"--batch", "--seed"}}}};
}

OptionUse of_reproduce() {
    return {"reproduce",
            {"paper", "--output", "--minutes", "--seeds", "--data", "--data-sets", "--threads", "--launch", "--resume",
             "--json"},
            {}};
}

OptionUse of_cost() {
    const Names sizes{"model", "--preset", "--config"};
    const Names formulas = joined_options(sizes, {"--lengths", "--batch", "--tensor-parallel", "--bytes",
                                                  "--softmax-share", "--prefetch", "--mixers", "--output"});
    return {"cost",
            {"--json", "--measure", "--latency", "--variants", "--embeddings"},
            {{"formulas", formulas},
             {"--measure", joined_options(formulas, {"--device", "--threads"})},
             {"--latency", {"model", "--lengths", "--batch", "--seed", "--output", "--device", "--threads"}},
             {"--variants", joined_options(sizes, {"--batch", "--length"})},
             {"--embeddings", {"--hidden", "--rows", "--bits", "--group-bits"}}}};
}

OptionUse of_ask() {
    OptionUse use{"ask", ask::common_options(), {}};
    for (const auto& tool : ask_tools()) use.kinds.push_back({tool->name(), ask::options_of_tool(tool->name())});
    return use;
}

OptionUse of_export() {
    // Each recipe has its own options of figures: check_figure_flags().
    OptionUse use{"export", {"files", "--figure", "--output"}, {}};
    for (const auto& option : figures::figure_options()) use.always.push_back("--" + option.name);
    return use;
}

std::vector<OptionUse> all_uses() {
    const Names compute{"--dtype", "--device", "--threads", "--kernels", "--beyond-positions", "--json"};
    return {{"info", {"path", "--json"}, {{"checkpoints", {"--adapter", "--tensors"}}, {"other files", {}}}},
            {"tokenize",
             {"model", "--json"},
             {{"a text", {"text", "--file", "--plain", "--chat"}}, {"--decode", {"--decode", "--skip-special"}}}},
            {"analyze",
             joined_options(compute,
                            {"models", "--output", "--adapter", "--tokens", "--target", "--target-tokens", "--length",
                             "--windows", "--segment", "--memory", "--repeat-token", "--record", "--layers", "--skip",
                             "--switch-off", "--switch-off-how", "--interventions", "--weights", "--all-rows"}),
             {{"texts", {"--text", "--file", "--example", "--pair", "--bos", "--chat"}},
              {"--tokens", {"--labels"}},
              {"--record maps", {"--maps-int16"}}}},
            of_ask(),
            of_export(),
            {"generate",
             joined_options(compute, {"model", "--adapter", "--prompt", "--tokens", "--first-token", "--temperature",
                                      "--weights", "--interventions"}),
             {{"a --temperature above 0", {"--top-k", "--top-p", "--seed"}}, {"greedy decoding", {"--beams"}}}},
            of_evaluate(),
            of_cost(),
            of_reproduce(),
            {"convert",
             {"paths", "--dtype"},
             {{"--swap", {"--swap", "--mixer-options", "--seed", "--adapter"}},
              {"--average", {"--average", "--last"}},
              {"a change of type", {"--adapter"}}}},
            {"list", {"what", "--json"}, {}},
            {"bench", joined_options(compute, {"model", "--length", "--repeat", "--what"}), {}},
            {"train",
             {"job", "--output", "--resume", "--from", "--set", "--device", "--nice", "--json"},
             {{"--from", {"--fresh-optimizer"}}, {"a new run", {}}, {"--resume", {}}}},
            {"control", {"run", "action", "--wait", "--json"}, {{"rate", {"value"}}, {"other actions", {}}}}};
}

bool has(const Names& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> joined_options(std::vector<std::string> first, const std::vector<std::string>& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
}

const std::vector<OptionUse>& option_uses() {
    static const std::vector<OptionUse> uses = all_uses();
    return uses;
}

const OptionUse& option_use(const std::string& command) {
    const auto& all = option_uses();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const OptionUse& use) { return use.command == command; });
    if (found == all.end())
        throw Error(ErrorCode::internal, "headscope " + command, "expected it in option_use.cpp", "found it missing");
    return *found;
}

std::vector<std::string> given_options(const CLI::App& command) {
    Names given;
    for (const CLI::Option* option : command.get_options())
        if (option->count() > 0) given.push_back(option->get_name());
    return given;
}

const Names& output_options() {
    static const Names names{"--output",       "--csv",   "--rank",    "--save-vector",
                             "--headvis-tree", "--items", "--prompts", "--dump"};
    return names;
}

const Names& input_options() {
    static const Names names{"model",
                             "models",
                             "files",
                             "path",
                             "job",
                             "run",
                             "--adapter",
                             "--tokens",
                             "--target-tokens",
                             "--labels",
                             "--file",
                             "--reference-tokens",
                             "--interventions",
                             "--vector",
                             "--lens-file",
                             "--clean-tokens",
                             "--corrupted-tokens",
                             "--corrupted-target-tokens",
                             "--positive-tokens",
                             "--negative-tokens",
                             "--folder",
                             "--json-lines",
                             "--data",
                             "--haystack",
                             "--predictions",
                             "--from",
                             "--data-sets",
                             "--config"};
    return names;
}

void check_outputs(const GivenValues& given) {
    std::vector<std::pair<std::string, std::string>> outputs;
    for (const auto& [option, values] : given) {
        if (!has(output_options(), option)) continue;
        for (const std::string& value : values) {
            if (value.empty()) continue;
            for (const auto& [other, name] : outputs)
                if (same_file(name, value))
                    throw Error(ErrorCode::usage, option, "expected an output of its own",
                                "found the same file as " + other + ", " + shown(name));
            outputs.emplace_back(option, value);
        }
    }
    for (const auto& [option, values] : given) {
        if (!has(input_options(), option)) continue;
        for (const std::string& value : values) {
            const std::size_t sign = value.find('=');  // NAME=PATH
            for (const auto& [output, name] : outputs)
                if (same_file(name, value) || (sign != std::string::npos && same_file(name, value.substr(sign + 1))))
                    throw Error(ErrorCode::usage, output, "expected an output that is not an input",
                                "found the same file as " + option + ", " + shown(name));
        }
    }
}

void check_outputs(const CLI::App& command) {
    GivenValues given;
    for (const CLI::Option* option : command.get_options())
        if (option->count() > 0) given.emplace_back(option->get_name(), option->results());
    check_outputs(given);
}

void check_options(const std::string& command, const std::vector<std::string>& given,
                   const std::vector<std::string>& kinds) {
    const OptionUse& use = option_use(command);
    for (const std::string& option : given) {
        if (has(use.always, option)) continue;
        std::string readers;
        bool read = false;
        for (const CommandKind& kind : use.kinds) {
            if (!has(kind.reads, option)) continue;
            read = read || has(kinds, kind.name);
            readers += (readers.empty() ? "" : "; ") + kind.name;
        }
        if (read) continue;
        throw UsageError(option + " has no effect on " + command + " with " +
                         (kinds.empty() ? "these options" : joined_text(kinds, "; ")) +
                         "; it is read with: " + readers);
    }
}

}  // namespace headscope::app
