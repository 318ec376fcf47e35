// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/figures/figure_inputs.h"
#include "core/figures/figure_options.h"

namespace headscope::figures {

/// Inputs of a recipe other than analyses.
enum class RecipeInputs { none, runs, evaluations, models, tensors, hashes, asks };

/// Heads that a recipe takes: at most one, several of one file, or one or their
/// mean for each file.
enum class RecipeHeads { one, several, of_each_file };

struct Recipe {
    std::string name;           ///< of --figure
    std::string former_name{};  ///< accepted in its place
    std::string description;
    std::string needs;
    /// Null: not of analyses.
    FigureData (*of_analyses)(std::span<const std::shared_ptr<store::AnalysisFile>>, const FigureOptions&) = nullptr;
    FigureData (*of_others)(const FigureInputs&, const FigureOptions&) = nullptr;
    RecipeInputs others = RecipeInputs::none;
    RecipeInputs or_others = RecipeInputs::none;  ///< another kind, not with the first
    std::vector<std::string> options{};           ///< names of those that it reads (options/option_list.h)
    RecipeHeads heads = RecipeHeads::one;
    bool latex = false;  ///< its figures have FigureData::latex

    bool is_of(RecipeInputs inputs) const { return others == inputs || or_others == inputs; }
};

/// In the order of `list figures`.
std::span<const Recipe* const> recipes();

/// By name or former name; null: none.
const Recipe* find_recipe(const std::string& name);

/// Throws Error (usage) for an unknown recipe, naming the known ones, when a file lacks what the recipe needs, and for
/// files of a kind that the recipe is not of.
FigureData make_figure(const std::string& recipe, const FigureInputs& inputs, const FigureOptions& options);
/// The same of analyses alone.
FigureData make_figure(const std::string& recipe, std::span<const std::shared_ptr<store::AnalysisFile>> files,
                       const FigureOptions& options);

/// The figure's numbers as CSV (RFC 4180), one observation per row, in full precision.
std::string figure_csv(const FigureData& figure);

}  // namespace headscope::figures
