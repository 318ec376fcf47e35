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
    Entry{"logits",
          "distribution of the scores per layer, or per head of --layer, and of the weights; models side by side",
          "logit histograms; --stage after: maps (analyze --record maps)", logits},
    Entry{"attention", "attention map of one head, or of all heads of --layer", "maps (analyze --record maps)",
          attention},
    Entry{"indicators", "heat map layers x heads of --indicator, or of every indicator", "indicators", indicators},
    Entry{"lines", "tokens left and right with weighted lines between them, of one head, several, or a layer's mean",
          "maps (analyze --record maps)", lines},
    Entry{"text", "the text, coloured by what --query looks at, by who is looked at, or by loss",
          "column mass or loss; --query: maps (analyze --record maps)", text},
    Entry{"states", "norms and variances of queries, keys, values and hidden states by position",
          "states (analyze --record states)", states},
    Entry{"loss", "next-token loss by position, its running mean, the most surprising tokens", "loss", loss},
    Entry{"difference", "what differs between two analyses: indicators, or the maps of --layer and --head",
          "two files of models alike; for maps: analyze --record maps", difference},
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
    if (options.head && !options.heads.empty())
        throw Error(ErrorCode::usage, "--heads", "expected either --head or --heads", "found both");
    if (!options.heads.empty() && recipe != "lines") {
        throw Error(ErrorCode::usage, "--head", "expected one head; several are for the figure lines",
                    "found " + std::to_string(options.heads.size()));
    }
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
