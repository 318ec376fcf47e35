// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results of evaluation files as points to draw: models that differ by their seed alone are one group, whose value is
// the mean over its seeds. Models whose seed is not known are one group where their weights are the same. Where files
// do not say what job trained a model, two models of one seed are no seeds of one either. Values of different texts are
// never averaged, and one model's value on one text counts once: that over the most tokens or items.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/figures/figure_options.h"
#include "core/mixers/types/type.h"
#include "core/store/evaluation/evaluation_file.h"

namespace headscope::figures {

using Evaluations = std::span<const std::shared_ptr<const store::Evaluation>>;

/// True if a recipe draws a result. Some tasks have a figure of their own and are in no other.
bool draws(const std::string& recipe, const store::EvaluationResult& result);

/// Subject of a value.
struct Measured {
    std::string task, metric;
    std::int64_t shots = 0;
    /// EvaluationResult's; the text's name with its digest where two texts have that name.
    std::string text{}, subset{};
    auto operator<=>(const Measured&) const = default;
};

/// Baselines without a model: guesses, and the answer that is right most often.
struct Baselines {
    std::optional<double> chance, majority;
};

struct EvaluationValue {
    double mean = 0;
    double error = 0;                    ///< over seeds: standard deviation; of one: its standard error; NaN: not known
    std::vector<double> each;            ///< one a seed
    std::vector<std::string> weights{};  ///< of each; empty: not known
    std::vector<std::int64_t> counts{};  ///< of each: tokens or items
};

/// A model of a file.
struct EvaluationMember {
    std::shared_ptr<const store::Evaluation> evaluation;
    std::int64_t model = 0;  ///< index in Evaluation::models
    bool operator==(const EvaluationMember&) const = default;
};

struct EvaluationGroup {
    std::string mixer, layout;  ///< as EvaluatedModel has them
    bool skipped = false;       ///< blocks that are not Standard were left out
    std::int64_t parameters = 0, layers = 0, training_length = 0;
    std::int64_t attention_parameters = -1, embedding_parameters = -1;  ///< as EvaluatedModel has them
    std::string model;                                                  ///< name of its first model
    std::string label;       ///< "Standard", "RndEmbQK uniform", "MLP even", "MLP even, skipped"; or the given name
    std::string given = {};  ///< by options.names; empty: none
    std::map<Measured, std::map<std::int64_t, EvaluationValue>> values;  ///< by length
    std::vector<EvaluationMember> members{};

    bool standard() const { return mixers::is_standard(mixer); }
    const std::string& name() const { return given.empty() ? model : given; }
    const EvaluationValue* find(const Measured& what, std::int64_t length) const;
};

class EvaluationGroups {
public:
    /// Takes the results that `recipe` draws. `names`: options.names, one for each group in the order in which the
    /// files have them; throws Error (usage) for another number.
    explicit EvaluationGroups(Evaluations evaluations, const std::string& recipe = "",
                              const std::vector<std::string>& names = {});

    /// Standard first, then by mixer and layout in the paper's order.
    const std::vector<EvaluationGroup>& groups() const noexcept { return groups_; }
    /// Tasks and metrics, in the order in which they were stored.
    const std::vector<Measured>& measured() const noexcept { return all_; }
    /// At which that was measured.
    std::set<std::int64_t> lengths(const Measured& what) const;
    /// "perplexity: token perplexity", or short where they say the same; with the text's name where the task was
    /// measured on several, and the subset's.
    std::string title(const Measured& what) const;
    /// ", kjv": the same words alone.
    std::string text_words(const Measured& what) const;
    /// Baselines of a task's accuracies, or of a perplexity.
    Baselines baselines(const Measured& what) const;
    /// Tasks with the metric to draw: those that the options ask for, or every task with its first metric. Throws Error
    /// usage that lists what there is.
    std::vector<Measured> chosen(const FigureOptions& options) const;
    /// The length to draw: the one asked for, else the longest that does not pass the training length. Throws usage.
    std::int64_t chosen_length(const Measured& what, const FigureOptions& options) const;
    std::size_t most_seeds() const noexcept { return most_seeds_; }
    /// "Bars: standard deviation over 3 seeds." and the like.
    std::string error_note() const;

private:
    bool several_texts(const std::string& task) const;

    std::vector<EvaluationGroup> groups_;
    std::vector<Measured> all_;
    std::map<Measured, Baselines> baselines_;  ///< of a task, without its metric
    std::size_t most_seeds_ = 0;
    bool some_have_one_ = false;
};

/// The index of the group that an option names by its name in the figure or by its model's. Throws Error usage that
/// lists the names.
std::size_t named_group(const std::vector<EvaluationGroup>& groups, const char* option, const std::string& name);

/// A name for each group: the given one, else its label; its model's name if several have that label, or if one of them
/// is a stack without a layout, whose label is empty.
std::vector<std::string> group_names(const std::vector<EvaluationGroup>& groups);

/// Names of the models that were trained at each length.
using TrainingLengths = std::map<std::int64_t, std::vector<std::string>>;
/// A logarithmic axis of context lengths: a tick at each, and a marked line where models were trained, as far as that
/// is near; it names them where others were trained at another length.
void set_length_axis(Panel& panel, const std::set<std::int64_t>& lengths, const TrainingLengths& trained);
/// The marked lines alone, of an axis from `low` to `high`; the end of the axis where a line is beyond.
double mark_training(Panel& panel, const TrainingLengths& trained, std::int64_t low, std::int64_t high);

/// Throws Error limit for more panels than anybody looks at: a file may name any number of tasks and layouts.
void check_panels(std::size_t count);

/// PEoP of a score over the smallest model's, by weights of attention (-1: not known); NaN where it is not defined:
/// mixers without attention have none.
double elasticity(const std::string& mixer, double score, std::int64_t weights, double of_smallest,
                  std::int64_t smallest_weights, bool lower);

/// Place of a layout in the paper's order.
std::size_t layout_rank(const std::string& layout);
/// "arc easy" for "arc_easy".
std::string spaced(std::string name);
/// "5 shots": examples in the prompt.
std::string shots_text(std::int64_t shots);
bool lower_is_better(const std::string& metric);
/// A share of items that models got right, as lm-eval calls it.
bool is_accuracy(const std::string& metric);
/// An accuracy over chance and majority, (acc - c) / (1 - c): stored with `evaluate --baselines`, drawn by --metric.
inline constexpr const char* kChanceAdjusted = "acc_chance";

/// Sizes of models from small to large: parameters that differ by a quarter or less are one size (some mixers have no
/// biases), named by the largest.
std::vector<std::int64_t> model_sizes(const std::vector<EvaluationGroup>& groups);
/// Which of them a model has.
std::size_t size_index(const std::vector<std::int64_t>& sizes, std::int64_t parameters);

/// A logarithmic scale where positive values differ by more than a factor of ten.
ScaleKind scale_for(const std::vector<double>& values);

/// Adds a value and the ends of its error bar, as far as that scale has them: what an axis must reach to.
void add_reach(std::vector<double>& reach, const EvaluationValue& value, ScaleKind scale);

/// The values with some room at both ends, on that scale.
std::pair<double, double> padded_range(const std::vector<double>& values, ScaleKind scale);

/// Diameter of a model's dot: larger ones larger.
double size_dot(const std::vector<std::int64_t>& sizes, std::int64_t parameters);

/// Axis whose rows carry labels, the first at the top; row i is at rows - 1 - i.
Axis label_axis(const std::vector<std::string>& labels);

/// A panel for each of `chosen`, in every one of which `rows` rows carry dots, and the table of all.
FigureData rows_figure(const EvaluationGroups& evaluations, const std::vector<Measured>& chosen, std::size_t rows,
                       const std::function<Panel(const Measured&)>& panel);
/// For each of them: "perplexity: at 256 tokens, lower is better."
std::vector<std::string> reading_notes(const EvaluationGroups& evaluations, const std::vector<Measured>& chosen,
                                       const FigureOptions& options);

/// task, metric, mixer, layout, skipped, parameters, length, shots, value, error, seeds, model, training_length, text,
/// subset: everything that there is of these.
Table evaluation_table(const std::vector<EvaluationGroup>& groups, const std::vector<Measured>& chosen);

}  // namespace headscope::figures
