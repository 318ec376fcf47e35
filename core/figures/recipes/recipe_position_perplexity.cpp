// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity by position in a long text (NAtS-L, Fig. 3 and 6): a panel a text, a line a model, the mean of the last
// buckets wide and each bucket faint, on a logarithmic axis of positions, the training length marked.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/series.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr const char* kRecipe = "position-perplexity";
constexpr std::size_t kMostPoints = 1200;
/// The running mean's default width is this part of the buckets.
constexpr std::size_t kPart = 16;

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), options_(options), names_(group_names(evaluations.groups())) {}

    FigureData make() {
        std::vector<Measured> drawn;
        for (const auto& what : evaluations_.measured())
            if (what.metric == "token_perplexity") drawn.push_back(what);
        if (drawn.empty())
            throw Error(ErrorCode::usage, "figure position-perplexity", "expected results named token_perplexity",
                        "found others");
        check_panels(drawn.size());
        FigureData figure;
        figure.title = "Perplexity by position";
        for (const auto& what : drawn) figure.panels.push_back(panel(what));
        figure.panel_aspect = 0.55;
        if (drawn.size() > 1) {
            figure.columns = std::min<std::int64_t>(2, std::ssize(drawn));
            figure.reflow = true;
            figure.narrowest_mm = 60;
        }
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            Curve coloured;
            colour_member(coloured, g, groups.size());
            figure.legend.push_back({names_[g], coloured.colour, coloured.shade});
        }
        figure.notes.push_back(
            "Points stand at the last position of their bucket." +
            std::string(smoothed_ ? " Thin line: each bucket; thick line: mean loss of the last ones." : ""));
        if (evaluations_.most_seeds() > 1)
            figure.notes.push_back("Means over " + std::to_string(evaluations_.most_seeds()) + " seeds.");
        figure.table = [table = table()] { return table; };
        return figure;
    }

private:
    Panel panel(const Measured& what) {
        Panel panel;
        Curves curves;
        std::set<std::int64_t> lengths;
        TrainingLengths trained;
        std::vector<double> values;
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const auto measured = groups[g].values.find(what);
            if (measured == groups[g].values.end()) continue;
            add_model(curves, what, measured->second, g, values);
            for (const auto& [position, value] : measured->second)
                if (position > 0) lengths.insert(position);
            if (groups[g].training_length > 0) trained[groups[g].training_length].push_back(names_[g]);
        }
        const std::string words = evaluations_.text_words(what);
        panel.title = words.empty() ? "" : words.substr(2);  // ", kjv"
        const ScaleKind scale = scale_for(values);
        panel.y.label = "perplexity";
        panel.y.scale = scale;
        panel.y.range = padded_range(values, scale);
        panel.x.label = "position (tokens)";
        panel.x.scale = ScaleKind::logarithmic;
        if (!lengths.empty()) {
            const double high = mark_training(panel, trained, *lengths.begin(), *lengths.rbegin());
            panel.x.range = std::pair(static_cast<double>(*lengths.begin()) / 1.05, high * 1.05);
        }
        panel.content = std::move(curves);
        return panel;
    }

    /// Adds the lines of model `g`, whose values reach over `values`.
    void add_model(Curves& curves, const Measured& what, const std::map<std::int64_t, EvaluationValue>& by_position,
                   std::size_t g, std::vector<double>& values) {
        const EvaluationGroup& group = evaluations_.groups()[g];
        Curve raw;
        std::vector<double> losses;
        for (const auto& [position, value] : by_position) {
            if (position <= 0 || !(value.mean > 0)) continue;
            raw.x.push_back(static_cast<double>(position));
            raw.y.push_back(value.mean);
            errors_.push_back(value.error);
            losses.push_back(std::log(value.mean));
        }
        const std::size_t window = options_.smooth
                                       ? static_cast<std::size_t>(std::max<std::int64_t>(1, *options_.smooth))
                                       : std::max<std::size_t>(1, losses.size() / kPart);
        Curve mean = raw;
        mean.y = running_mean(losses, window);
        for (double& value : mean.y) value = std::exp(value);
        for (std::size_t i = 0; i < raw.x.size(); ++i) {
            model_.push_back(names_[g]);
            text_.push_back(what.text);
            mixer_.push_back(group.mixer);
            layout_.push_back(group.layout);
            parameters_.push_back(group.parameters);
            training_length_.push_back(group.training_length);
            position_.push_back(static_cast<std::int64_t>(raw.x[i]));
            perplexity_.push_back(raw.y[i]);
            running_.push_back(mean.y[i]);
        }
        values.insert(values.end(), mean.y.begin(), mean.y.end());
        for (Curve* curve : {&raw, &mean}) {
            curve->name = names_[g];
            colour_member(*curve, g, evaluations_.groups().size());
        }
        if (window > 1) {
            smoothed_ = true;
            values.insert(values.end(), raw.y.begin(), raw.y.end());
            raw.faint = true;
            curves.curves.insert(curves.curves.begin(), thinned(std::move(raw), kMostPoints));
        }
        curves.curves.push_back(thinned(std::move(mean), kMostPoints));
    }

    Table table() const {
        return {{{"model", model_},
                 {"mixer", mixer_},
                 {"layout", layout_},
                 {"parameters", parameters_},
                 {"training_length", training_length_},
                 {"position", position_},
                 {"perplexity", perplexity_},
                 {"error", errors_},
                 {"running_mean", running_},
                 {"text", text_}}};
    }

    const EvaluationGroups& evaluations_;
    const FigureOptions& options_;
    std::vector<std::string> names_;
    bool smoothed_ = false;
    std::vector<std::string> model_, text_, mixer_, layout_;
    std::vector<std::int64_t> parameters_, training_length_, position_;
    std::vector<double> perplexity_, errors_, running_;
};

FigureData position_perplexity(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, kRecipe, options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kPositionPerplexity{
    .name = "position-perplexity",
    .description = "perplexity by position in a long text, several models",
    .needs = "evaluations with position_perplexity",
    .of_others = position_perplexity,
    .others = RecipeInputs::evaluations,
    .options = {"names", "smooth"},
};

}  // namespace headscope::figures
