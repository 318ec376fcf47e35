// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/option_list.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
#define HEADSCOPE_RECIPE(constant) extern const Recipe constant;
#include "core/figures/recipes/list.inc"
#undef HEADSCOPE_RECIPE

std::span<const Recipe* const> recipes() {
#define HEADSCOPE_RECIPE(constant) &constant,
    static constexpr std::array kRecipes{
#include "core/figures/recipes/list.inc"
    };
#undef HEADSCOPE_RECIPE
    return kRecipes;
}

const Recipe* find_recipe(const std::string& name) {
    for (const Recipe* recipe : recipes())
        if (name == recipe->name || (!recipe->former_name.empty() && name == recipe->former_name)) return recipe;
    return nullptr;
}

namespace {

const Recipe& recipe_of(const std::string& name) {
    if (const Recipe* recipe = find_recipe(name)) return *recipe;
    std::string known;
    for (const Recipe* recipe : recipes()) known += (known.empty() ? "" : ", ") + recipe->name;
    throw Error(ErrorCode::usage, "--figure", "expected one of " + known, "found " + escaped(name));
}

/// Lists and means of heads are not for every figure.
void check_lists(const Recipe& recipe, const FigureOptions& options) {
    const auto refuse = [](const char* option, const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, option, "expected " + expected, "found " + found);
    };
    const bool maps = recipe.heads == RecipeHeads::of_each_file;
    if (options.head && !options.heads.empty()) refuse("--heads", "either --head or --heads", "both");
    if (!options.heads.empty() && recipe.heads == RecipeHeads::one) {
        refuse("--head", "one head; several are for the figure lines, and for attention of several files",
               std::to_string(options.heads.size()));
    }
    if (!options.layers.empty() && !maps) {
        refuse("--layer", "one layer; several are for the figure attention of several files",
               std::to_string(options.layers.size()));
    }
    const bool mean = options.head == kMeanOfHeads ||
                      std::find(options.heads.begin(), options.heads.end(), kMeanOfHeads) != options.heads.end();
    if (mean && !maps)
        refuse("--head", "a number, counted from 0; the mean of heads is for the figure attention", "mean");
}

FigureData make_of_analyses(const Recipe& recipe, Files files, const FigureOptions& options) {
    check_lists(recipe, options);
    FigureData figure = recipe.of_analyses(files, options);
    figure.recipe = recipe.name;
    return figure;
}

struct Kind {
    const char* name;
    bool found, wanted;
};

}  // namespace

FigureData make_figure(const std::string& name, const FigureInputs& inputs, const FigureOptions& options) {
    const Recipe& recipe = recipe_of(name);
    const std::array<Kind, 7> kinds{
        {{"analysis files", !inputs.analyses.empty(), recipe.of_analyses != nullptr},
         {"runs", !inputs.runs.empty(), recipe.is_of(RecipeInputs::runs)},
         {"evaluation files", !inputs.evaluations.empty(), recipe.is_of(RecipeInputs::evaluations)},
         {"models", !inputs.models.empty(), recipe.is_of(RecipeInputs::models)},
         {"checkpoints", !inputs.tensors.empty(), recipe.is_of(RecipeInputs::tensors)},
         {"hashes of words", !inputs.hashes.empty(), recipe.is_of(RecipeInputs::hashes)},
         {"ask files", !inputs.asks.empty(), recipe.is_of(RecipeInputs::asks)}}};
    std::string wanted, found;
    int known = 0, unknown = 0;
    for (const Kind& kind : kinds) {
        if (kind.wanted) wanted += (wanted.empty() ? "" : " or ") + std::string(kind.name);
        if (!kind.found) continue;
        found += (found.empty() ? "" : " and ") + std::string(kind.name);
        (kind.wanted ? known : unknown) += 1;
    }
    if (known != 1 || unknown > 0) {
        throw Error(ErrorCode::usage, "figure " + name, "expected " + wanted + ", of one kind",
                    "found " + (found.empty() ? "none" : found));
    }
    if (!inputs.analyses.empty()) return make_of_analyses(recipe, inputs.analyses, options);
    check_lists(recipe, options);
    FigureData figure = recipe.of_others(inputs, options);
    figure.recipe = recipe.name;
    return figure;
}

FigureData make_figure(const std::string& name, Files files, const FigureOptions& options) {
    const Recipe& recipe = recipe_of(name);
    if (files.empty())
        throw Error(ErrorCode::usage, "figure " + name, "expected at least one analysis file", "found none");
    if (recipe.of_analyses == nullptr)
        throw Error(ErrorCode::usage, "figure " + name, std::string("expected ") + recipe.needs,
                    "found analysis files");
    return make_of_analyses(recipe, files, options);
}

std::string figure_csv(const FigureData& figure) {
    if (!figure.table)
        throw Error(ErrorCode::internal, "figure " + figure.recipe, "expected a table of its numbers", "found none");
    return csv(figure.table());
}

}  // namespace headscope::figures
