// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

struct Entry {
    const char* name;
    const char* description;
    const char* needs;
    FigureData (*make)(Files, const FigureOptions&);
};

// One line a recipe. A name here is what the command line's --figure takes.
constexpr std::array kRecipes{
    Entry{"radar", "one polar plot per layer of the paper's indicators; models in columns", "indicators", radar},
    Entry{"logits", "distribution of the scores per layer, or per head of --layer; models side by side",
          "logit histograms", logits},
    Entry{"attention", "attention map of one head, or of all heads of --layer", "maps (analyze --record maps)",
          attention},
    Entry{"indicators", "heat map layers x heads of --indicator, or of every indicator", "indicators", indicators},
    Entry{"thumbnails", "small attention maps of every head of every layer", "thumbnails", thumbnails},
};

}  // namespace

std::vector<RecipeInfo> recipes() {
    std::vector<RecipeInfo> all;
    for (const auto& entry : kRecipes) all.push_back({entry.name, entry.description, entry.needs});
    return all;
}

FigureData make_figure(const std::string& recipe, Files files, const FigureOptions& options) {
    const auto* entry = std::find_if(kRecipes.begin(), kRecipes.end(), [&](const auto& e) { return recipe == e.name; });
    if (entry == kRecipes.end()) {
        std::string known;
        for (const auto& e : kRecipes) known += (known.empty() ? "" : ", ") + std::string(e.name);
        throw Error(ErrorCode::usage, "--figure", "expected one of " + known, "found " + escaped(recipe));
    }
    if (files.empty())
        throw Error(ErrorCode::usage, "figure " + recipe, "expected at least one analysis file", "found none");
    FigureData figure = entry->make(files, options);
    figure.recipe = recipe;
    return figure;
}

std::string figure_csv(const FigureData& figure) {
    if (!figure.table)
        throw Error(ErrorCode::internal, "figure " + figure.recipe, "expected a table of its numbers", "found none");
    return csv(figure.table());
}

}  // namespace headscope::figures
