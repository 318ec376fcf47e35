// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The list of figure options: the command line makes its options from it, the export page its arguments, and both check
// values with it.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/option.h"
#include "core/figures/figure_options.h"
#include "core/figures/figure_style.h"

namespace headscope::figures {

/// Everything about a figure but its files and where it goes.
struct FigureRequest {
    std::string recipe;
    FigureOptions options;
    FigureStyle style;

    bool operator==(const FigureRequest&) const = default;
};

/// `name` without dashes: "layer". `standard` is set for numbers of the page alone.
struct FigureOption : Option {
    using Set = std::function<void(FigureRequest&, const std::vector<std::string>& values)>;
    using Get = std::function<std::vector<std::string>(const FigureRequest&)>;
    /// The kind is flag without `value`, choice with `choices`, else text.
    FigureOption(std::string name, std::string value, std::string help, std::vector<std::string> choices, bool repeats,
                 Set set, Get get);

    std::string value;     ///< the argument's name: "N", "MM", "NAME"; empty for flags
    bool repeats = false;  ///< may be given more than once

    /// Throws usage errors with the option's name. `values`: one for each time it was given, none for a flag.
    Set set;
    /// The values that `set` reads back; empty for the default. A flag: one empty one.
    Get get;
    bool of_page = false;  ///< of the page, and so of every recipe
};

std::span<const FigureOption> figure_options();

/// Null for an unknown name.
const FigureOption* find_figure_option(const std::string& name);

/// The name of a recipe by its former one ("logits" is "scores"); any other name as it is.
std::string current_recipe(const std::string& name);

bool has_option(const std::string& recipe, const FigureOption& option);
/// Names of the recipes that read it, in the order of recipes(); empty: all.
std::vector<std::string> recipes_with(const FigureOption& option);

}  // namespace headscope::figures
