// SPDX-License-Identifier: GPL-3.0-or-later
// Where Standard layers are needed (Deconstructing Attention, Fig. 3): a row a layout, a dot a mixer, a line where the
// model of Standard layers alone is. A panel a task.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/mixers/types/type.h"

namespace headscope::figures {
namespace {

/// Series with one color: a given name, or a mixer, separate if its blocks were skipped.
std::string series_of(const EvaluationGroup& group) {
    if (!group.given.empty()) return group.given;
    return mixers::column_title_of(group.mixer) + (group.skipped ? ", skipped" : "");
}

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), options_(options) {
        for (const auto& group : evaluations.groups()) {
            if (group.standard()) continue;
            if (std::find(layouts_.begin(), layouts_.end(), group.layout) == layouts_.end())
                layouts_.push_back(group.layout);
            const auto name = series_of(group);
            if (std::find(series_.begin(), series_.end(), name) == series_.end()) series_.push_back(name);
        }
        sizes_ = model_sizes(evaluations.groups());
        std::stable_sort(layouts_.begin(), layouts_.end(),
                         [](const auto& a, const auto& b) { return layout_rank(a) < layout_rank(b); });
        if (layouts_.empty()) {
            throw Error(ErrorCode::usage, "figure ablation", "expected evaluations of layouts with other mixers",
                        "found none but Standard");
        }
    }

    FigureData make() {
        const auto chosen = evaluations_.chosen(options_);
        FigureData figure =
            rows_figure(evaluations_, chosen, layouts_.size(), [this](const auto& what) { return panel(what); });
        figure.title = "Which layers are Standard";
        for (std::size_t i = 0; i < series_.size(); ++i)
            figure.legend.push_back({series_[i], static_cast<int>(i) + 1});  // 0 is Standard's
        figure.notes = reading_notes(evaluations_, chosen, options_);
        figure.notes.insert(figure.notes.begin(),
                            "Dashed: Standard in every layer. " +
                                std::string(sizes_.size() > 1 ? "Larger dots: larger models. " : "") +
                                evaluations_.error_note());
        return figure;
    }

private:
    Panel panel(const Measured& what) const {
        const auto length = evaluations_.chosen_length(what, options_);
        Panel panel;
        panel.x.label = evaluations_.title(what);
        panel.y = label_axis(layouts_);
        Curves curves;
        std::vector<EvaluationValue> values;
        const auto rows = static_cast<double>(layouts_.size());
        for (const auto& group : evaluations_.groups()) {
            const auto* value = group.find(what, length);
            if (value == nullptr) continue;
            values.push_back(*value);
            if (group.standard()) {
                values.back().error = 0;  // a line, without a bar
                if (!group.skipped)
                    panel.markers.push_back({true, value->mean, group.given.empty() ? "Standard" : group.given});
                continue;
            }
            const auto row = std::find(layouts_.begin(), layouts_.end(), group.layout) - layouts_.begin();
            const auto series = std::find(series_.begin(), series_.end(), series_of(group)) - series_.begin();
            // Series stand a little above each other, so that equal values are seen.
            const double step = 0.6 / static_cast<double>(series_.size());
            const double shift = (static_cast<double>(series_.size() - 1) / 2 - static_cast<double>(series)) * step;
            const double y = rows - 1 - static_cast<double>(row) + shift;
            Curve dot{group.label, {value->mean}, {y}, {value->error}};
            dot.points = true;
            dot.colour = static_cast<int>(series) + 1;
            dot.dot = size_dot(sizes_, group.parameters);
            dot.error_of_x = true;
            if (value->each.size() > 1) {
                Curve seeds{group.label, value->each, std::vector<double>(value->each.size(), y), {}};
                seeds.points = true;
                seeds.faint = true;
                seeds.dot = 0.45;
                seeds.colour = dot.colour;
                curves.curves.push_back(std::move(seeds));
            }
            curves.curves.push_back(std::move(dot));
        }
        std::vector<double> means, reach;
        for (const auto& value : values) means.push_back(value.mean);
        panel.x.scale = scale_for(means);
        for (const auto& value : values) add_reach(reach, value, panel.x.scale);
        panel.x.range = padded_range(reach, panel.x.scale);
        panel.content = std::move(curves);
        if (panel.markers.size() > 1) {  // sizes: the labels would lie on each other
            for (auto& marker : panel.markers) marker.label.clear();
        }
        return panel;
    }

    const EvaluationGroups& evaluations_;
    const FigureOptions& options_;
    std::vector<std::string> layouts_, series_;
    std::vector<std::int64_t> sizes_;
};

FigureData ablation(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "ablation", options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kAblation{
    .name = "ablation",
    .description = "a metric by layout, with a line at Standard's value",
    .needs = "evaluations of several layouts",
    .of_others = ablation,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "metric", "length"},
};

}  // namespace headscope::figures
