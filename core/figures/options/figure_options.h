// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one list of what can be chosen of a figure: the command line makes its options of it, the export page its
// arguments, and both check values with it.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/figures/figure.h"
#include "core/figures/figure_style.h"

namespace headscope::figures {

/// Everything about a figure but its files and where it goes.
struct FigureRequest {
    std::string recipe;
    FigureOptions options;
    FigureStyle style;

    bool operator==(const FigureRequest&) const = default;
};

struct FigureOption {
    std::string name;                  ///< without dashes: "layer"
    std::string value;                 ///< what follows it: "N", "MM", "NAME"; empty: nothing, a flag
    std::string help;                  ///< one line
    std::vector<std::string> choices;  ///< the values that there are; empty: any that `set` takes
    std::vector<std::string> recipes;  ///< those that have it; empty: all
    bool repeats = false;              ///< may be given more than once

    /// Throws Error (usage) that names the option, what was expected and found. `values`: one for each time it was
    /// given, none for a flag.
    std::function<void(FigureRequest&, const std::vector<std::string>& values)> set;
    /// The values that make `set` say the same again; nothing where the request has the default. A flag: one empty one.
    std::function<std::vector<std::string>(const FigureRequest&)> get;
};

std::span<const FigureOption> figure_options();

/// Null for an unknown name.
const FigureOption* find_figure_option(const std::string& name);

/// The name of today for a recipe by an older one ("logits" is "scores"); any other name as it is.
std::string current_recipe(const std::string& name);

bool has_option(const std::string& recipe, const FigureOption& option);

}  // namespace headscope::figures
