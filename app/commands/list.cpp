// SPDX-License-Identifier: GPL-3.0-or-later
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/options.h"
#include "app/resources.h"
#include "core/analysis/input.h"
#include "core/base/text/text.h"
#include "core/data/catalog.h"
#include "core/evaluation/tasks.h"
#include "core/figures/figure_style.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/option_list.h"
#include "core/mixers/types/type.h"
#include "core/model/load/presets.h"
#include "core/model/load/recipe.h"
#include "core/reproduce/paper.h"
#include "core/training/job/job_keys.h"
#include "kernels/backend.h"

namespace headscope::app {
namespace list_command {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string millions(std::int64_t parameters) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2fM", static_cast<double>(parameters) / 1e6);
    return text.data();
}

/// Sizes, with their parameters beside those that the paper names them by.
Rows preset_rows() {
    Rows rows;
    for (const model::Preset& preset : model::presets()) {
        const auto parameters = model::inspect_config(model::preset_json(preset.name).dump()).parameters;
        const std::string printed = preset.printed.empty() ? "" : " (the paper: " + preset.printed + ")";
        rows.push_back({preset.name, millions(parameters) + " parameters" + printed + ", " +
                                         std::to_string(preset.layers) + " layers, " + std::to_string(preset.hidden) +
                                         " wide, " + std::to_string(preset.heads) + " heads: " + preset.summary +
                                         (preset.chosen ? "; sizes chosen, the paper gives none" : "")});
    }
    return rows;
}

/// Figures, each with the options that it reads beside those of the page.
Rows figure_rows() {
    Rows rows;
    for (const auto* recipe : figures::recipes()) {
        std::vector<std::string> options;
        for (const auto& option : figures::figure_options())
            if (!option.of_page && figures::has_option(recipe->name, option)) options.push_back("--" + option.name);
        rows.push_back({recipe->name, recipe->description, recipe->needs, joined_text(options, " ")});
    }
    return rows;
}

Rows figure_option_rows() {
    Rows rows;
    for (const auto& option : figures::figure_options()) {
        const auto recipes = figures::recipes_with(option);
        rows.push_back({"--" + option.name, option.help,
                        option.choices.empty() ? option.value : joined_text(option.choices, "|"),
                        recipes.empty() ? "all" : joined_text(recipes, ", ")});
    }
    return rows;
}

/// Columns after the name and the description, as --json names them.
std::vector<std::string> more_columns(const std::string& what) {
    if (what == "figures") return {"needs", "options"};
    if (what == "figure-options") return {"values", "figures"};
    if (what == "job-keys") return {"default", "values"};
    if (what == "tasks") return {"metrics"};
    if (what == "datasets") return {"options"};
    return {};
}

Rows rows_of(const std::string& what) {
    Rows rows;
    if (what == "figures") rows = figure_rows();
    if (what == "figure-options") rows = figure_option_rows();
    if (what == "colour-maps") {
        for (const auto& map : figures::colour_maps()) {
            const bool diverging = map.kind == figures::ColourMap::diverging;
            rows.push_back({map.name, (diverging ? "diverging: " : "sequential: ") + map.description});
        }
    }
    if (what == "families")
        for (const auto* family : model::families()) rows.push_back({family->name, family->summary});
    if (what == "mixers")
        for (const auto* type : mixers::known_types()) rows.push_back({type->name, type->summary});
    if (what == "presets") rows = preset_rows();
    if (what == "datasets") {
        for (const auto& set : data::datasets())
            rows.push_back(
                {set.name, (set.is_generator ? "generator: " : "corpus: ") + set.description, data::options_text(set)});
    }
    if (what == "tasks")
        for (const auto& task : evaluation::tasks()) rows.push_back({task.name, task.summary, task.metrics});
    if (what == "job-keys") {
        const training::JobFile standard;
        for (const auto& key : training::job_keys()) {
            const nlohmann::json value = key.get(standard);
            rows.push_back(
                {key.full_name(), key.help, value.is_null() ? "" : training::toml_value(value), expected_text(key)});
        }
    }
    if (what == "kernels")
        for (const auto& name : kernels::available_backends()) rows.push_back({name});
    if (what == "papers")
        for (const auto& paper : reproduce::papers()) rows.push_back({paper.name, paper.title + ": " + paper.summary});
    if (what == "examples")
        for (const auto& name : analysis::bundled_texts(resource_folder())) rows.push_back({name});
    return rows;
}

}  // namespace
}  // namespace list_command

void add_list(CLI::App& app, Context& context) {
    using namespace list_command;
    auto* command = app.add_subcommand("list", "What there is: figures, mixers, families, kernels, examples, ...");
    static std::string what;
    static bool json = false;
    const std::vector<std::string> lists{"figures",  "figure-options", "colour-maps", "mixers", "families", "presets",
                                         "job-keys", "tasks",          "datasets",    "papers", "kernels",  "examples"};
    add_option(*command, "what", what, joined_text(lists, ", "))->required()->check(one_of(lists));
    add_flag(*command, "--json", json, "One JSON document");
    command->callback([&context] {
        context.command = [] {
            const auto more = more_columns(what);
            const Rows rows = rows_of(what);
            if (json) {
                nlohmann::json document = nlohmann::json::array();
                for (const auto& row : rows) {
                    nlohmann::json entry = {{"name", row[0]}};
                    if (row.size() > 1) entry["description"] = row[1];
                    for (std::size_t c = 2; c < row.size(); ++c) entry[more[c - 2]] = row[c];
                    document.push_back(entry);
                }
                print_json(document);
            } else if (rows.empty()) {
                print("No " + what + " in this version: they come with training and evaluation.\n");
            } else {
                std::vector<std::string> header{"name", "what it is"};
                header.insert(header.end(), more.begin(), more.end());
                header.resize(rows[0].size());
                print(format_table(header, rows));
            }
        };
    });
}

}  // namespace headscope::app
