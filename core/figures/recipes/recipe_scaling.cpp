// SPDX-License-Identifier: GPL-3.0-or-later
// Results across sizes (Deconstructing Attention, Fig. 4): a row a mixer and layout, dots from small to large models. A
// panel a task.

#include <algorithm>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/evaluation_groups.h"

namespace headscope::figures {
namespace {

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), options_(options) {
        for (const auto& group : evaluations.groups()) {
            if (std::find(rows_.begin(), rows_.end(), group.label) == rows_.end()) rows_.push_back(group.label);
        }
        sizes_ = model_sizes(evaluations.groups());
    }

    FigureData make() {
        const auto chosen = evaluations_.chosen(options_);
        FigureData figure =
            rows_figure(evaluations_, chosen, rows_.size(), [this](const auto& what) { return panel(what); });
        figure.title = "Results by size of the model";
        std::string sizes;
        for (const auto size : sizes_) sizes += (sizes.empty() ? "" : ", ") + short_count(static_cast<double>(size));
        figure.notes = reading_notes(evaluations_, chosen, options_);
        figure.notes.insert(figure.notes.begin(), (sizes_.size() > 1 ? "Dots from small to large: " : "") + sizes +
                                                      " parameters. " + evaluations_.error_note());
        figure.legend = {{"Standard", 0}, {"uniform", 1}, {"hybrid", 2}};
        return figure;
    }

private:
    Panel panel(const Measured& what) const {
        const auto length = evaluations_.chosen_length(what, options_);
        Panel panel;
        panel.x.label = measured_title(what);
        panel.y = label_axis(rows_);
        Curves curves;
        std::vector<EvaluationValue> values;
        for (std::size_t row = 0; row < rows_.size(); ++row) {
            const double y = static_cast<double>(rows_.size() - 1 - row);
            Curve path;
            std::vector<Curve> dots;
            for (const auto& group : evaluations_.groups()) {
                const auto* value = group.label == rows_[row] ? group.find(what, length) : nullptr;
                if (value == nullptr) continue;
                values.push_back(*value);
                Curve dot{group.label, {value->mean}, {y}, {value->error}};
                dot.points = true;
                dot.dot = size_dot(sizes_, group.parameters);
                dot.colour = group.standard() ? 0 : group.layout == "uniform" ? 1 : 2;
                dot.error_of_x = true;
                path.colour = dot.colour;
                path.x.push_back(value->mean);
                path.y.push_back(y);
                dots.push_back(std::move(dot));
            }
            path.faint = true;
            path.name = rows_[row];
            curves.curves.push_back(std::move(path));
            // Large ones first, so that a small one on the same place is seen.
            std::stable_sort(dots.begin(), dots.end(), [](const Curve& a, const Curve& b) { return a.dot > b.dot; });
            for (auto& dot : dots) curves.curves.push_back(std::move(dot));
        }
        std::vector<double> means, reach;
        for (const auto& value : values) means.push_back(value.mean);
        panel.x.scale = scale_for(means);
        for (const auto& value : values) add_reach(reach, value, panel.x.scale);
        panel.x.range = padded_range(reach, panel.x.scale);
        panel.content = std::move(curves);
        return panel;
    }

    const EvaluationGroups& evaluations_;
    const FigureOptions& options_;
    std::vector<std::string> rows_;
    std::vector<std::int64_t> sizes_;
};

}  // namespace

FigureData scaling(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations);
    return Maker(evaluations, options).make();
}

}  // namespace headscope::figures
