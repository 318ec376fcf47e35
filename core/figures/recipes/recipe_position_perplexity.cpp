// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity by position in a long text (NAtS-L, Fig. 3 and 6): a line a model, the mean of the last buckets wide and
// each bucket faint, on a logarithmic axis of positions, the training length marked.

#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/evaluation_groups.h"
#include "core/figures/recipes/run_series.h"

namespace headscope::figures {
namespace {

constexpr const char* kRecipe = "position-perplexity";
constexpr std::size_t kMostPoints = 1200;
/// The running mean takes such a part of the buckets, if nothing is said.
constexpr std::size_t kPart = 16;

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), options_(options), names_(group_names(evaluations.groups())) {}

    FigureData make() {
        Panel panel;
        Curves curves;
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) add_model(curves, g);
        const ScaleKind scale = scale_for(values_);
        panel.y.label = "perplexity";
        panel.y.scale = scale;
        panel.y.range = padded_range(values_, scale);
        panel.x.label = "position (tokens)";
        panel.x.scale = ScaleKind::logarithmic;
        if (!lengths_.empty()) {
            const double high = mark_training(panel, trained_, *lengths_.begin(), *lengths_.rbegin());
            panel.x.range = std::pair(static_cast<double>(*lengths_.begin()) / 1.05, high * 1.05);
        }
        panel.content = std::move(curves);

        FigureData figure;
        figure.title = "Perplexity by position";
        figure.panels.push_back(std::move(panel));
        figure.panel_aspect = 0.55;
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
    void add_model(Curves& curves, std::size_t g) {
        const EvaluationGroup& group = evaluations_.groups()[g];
        Curve raw;
        std::vector<double> losses;
        for (const auto& what : evaluations_.measured()) {
            const auto measured = group.values.find(what);
            if (measured == group.values.end() || what.metric != "token_perplexity") continue;
            for (const auto& [position, value] : measured->second) {
                if (position <= 0 || !(value.mean > 0)) continue;
                raw.x.push_back(static_cast<double>(position));
                raw.y.push_back(value.mean);
                errors_.push_back(value.error);
                losses.push_back(std::log(value.mean));
                lengths_.insert(position);
            }
        }
        if (group.training_length > 0) trained_[group.training_length].push_back(names_[g]);
        const std::size_t window = options_.smooth
                                       ? static_cast<std::size_t>(std::max<std::int64_t>(1, *options_.smooth))
                                       : std::max<std::size_t>(1, losses.size() / kPart);
        Curve mean = raw;
        mean.y = running_mean(losses, window);
        for (double& value : mean.y) value = std::exp(value);
        for (std::size_t i = 0; i < raw.x.size(); ++i) {
            model_.push_back(names_[g]);
            mixer_.push_back(group.mixer);
            layout_.push_back(group.layout);
            parameters_.push_back(group.parameters);
            training_length_.push_back(group.training_length);
            position_.push_back(static_cast<std::int64_t>(raw.x[i]));
            perplexity_.push_back(raw.y[i]);
            running_.push_back(mean.y[i]);
        }
        values_.insert(values_.end(), mean.y.begin(), mean.y.end());
        for (Curve* curve : {&raw, &mean}) {
            curve->name = names_[g];
            colour_member(*curve, g, evaluations_.groups().size());
        }
        if (window > 1) {
            smoothed_ = true;
            values_.insert(values_.end(), raw.y.begin(), raw.y.end());
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
                 {"running_mean", running_}}};
    }

    const EvaluationGroups& evaluations_;
    const FigureOptions& options_;
    std::vector<std::string> names_;
    std::set<std::int64_t> lengths_;
    TrainingLengths trained_;
    std::vector<double> values_;
    bool smoothed_ = false;
    std::vector<std::string> model_, mixer_, layout_;
    std::vector<std::int64_t> parameters_, training_length_, position_;
    std::vector<double> perplexity_, errors_, running_;
};

}  // namespace

FigureData position_perplexity(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, kRecipe);
    return Maker(evaluations, options).make();
}

}  // namespace headscope::figures
