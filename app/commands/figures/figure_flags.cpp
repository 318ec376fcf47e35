// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/figures/figure_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "app/commands/context.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/figures/make_figure.h"

namespace headscope::app {
namespace {

using figures::FigureOption;
using figures::FigureRequest;

void set(const FigureOption& option, FigureRequest& request, const std::vector<std::string>& values) {
    try {
        option.set(request, values);
    } catch (const Error& error) {
        throw CLI::ValidationError(error.where(), error.expected() + "; " + error.found());
    }
}

std::string help(const FigureOption& option) {
    std::string text = joined_text(figures::recipes_with(option), ", ");
    text += (text.empty() ? "" : ": ") + option.help;
    const std::string choices = joined_text(option.choices, ", ");
    return text + (choices.empty() ? "" : ": " + choices);
}

}  // namespace

void add_figure_flags(CLI::App& command, FigureRequest& request) {
    for (const auto& option : figures::figure_options()) {
        const std::string name = "--" + option.name;
        if (option.value.empty()) {
            command.add_flag_callback(
                name, [&option, &request] { set(option, request, {}); }, help(option));
        } else if (option.repeats) {
            command
                .add_option_function<std::vector<std::string>>(
                    name, [&option, &request](const auto& values) { set(option, request, values); }, help(option))
                ->allow_extra_args(false)
                ->type_name(option.value);
        } else {
            command
                .add_option_function<std::string>(
                    name, [&option, &request](const std::string& value) { set(option, request, {value}); },
                    help(option))
                ->type_name(option.value);
        }
    }
}

void check_figure_flags(const CLI::App& command, const FigureRequest& request) {
    if (figures::find_recipe(request.recipe) == nullptr) return;
    for (const auto& option : figures::figure_options()) {
        if (command.count("--" + option.name) == 0 || figures::has_option(request.recipe, option)) continue;
        std::string those;
        for (const auto& recipe : figures::recipes_with(option)) those += (those.empty() ? "" : ", ") + recipe;
        throw UsageError("--" + option.name + ": a figure that has it is expected (" + those + "); found " +
                         request.recipe);
    }
}

}  // namespace headscope::app
