// SPDX-License-Identifier: GPL-3.0-or-later
// Results across sizes (Deconstructing Attention, Fig. 4): a row a mixer and layout, dots from small to large models. A
// panel a task. Where weights of attention are known, a table of what each model keeps of the Standard one of its size
// (the thesis, Tables 3.14 and 3.15).

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "core/cost/thesis.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

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
        figure.text_table = text_table(chosen);
        if (figure.text_table)
            figure.notes.emplace_back("PRR: the score as a share of that of the Standard model of the same size.");
        return figure;
    }

private:
    /// The Standard model of a model's size: as many layers, and about as many parameters beside attention. Several
    /// may be (heads of other sizes): then that whose name begins most alike.
    const EvaluationGroup* standard_of(const EvaluationGroup& group) const {
        constexpr double same = 0.02;
        const auto beside = [](const EvaluationGroup& one) {
            return static_cast<double>(one.parameters - one.attention_parameters);
        };
        const EvaluationGroup* best = nullptr;
        std::ptrdiff_t most = -1;
        for (const auto& other : evaluations_.groups()) {
            if (!other.standard() || other.skipped || other.attention_parameters < 0 || other.layers != group.layers ||
                std::abs(beside(other) - beside(group)) > same * beside(group))
                continue;
            const auto alike =
                std::mismatch(group.model.begin(), group.model.end(), other.model.begin(), other.model.end()).first -
                group.model.begin();
            if (alike <= most) continue;
            most = alike;
            best = &other;
        }
        return best;
    }

    std::optional<TextTable> text_table(const std::vector<Measured>& chosen) const {
        TextTable table;
        table.header = {"model", "attention"};
        for (const auto& what : chosen) {
            table.header.push_back(evaluations_.title(what) + (lower_is_better(what.metric) ? " ↓" : " ↑"));
            table.header.emplace_back("PRR %");
        }
        bool some = false;
        for (const auto& group : evaluations_.groups()) {
            const auto* standard = group.attention_parameters < 0 ? nullptr : standard_of(group);
            if (standard == nullptr) continue;
            some = some || standard != &group;
            std::vector<std::string> cells{group.name(), short_count(static_cast<double>(group.attention_parameters))};
            for (const auto& what : chosen) {
                const auto length = evaluations_.chosen_length(what, options_);
                const auto *value = group.find(what, length), *all = standard->find(what, length);
                cells.push_back(value ? short_number(value->mean, 4) : "–");
                char share[32] = "–";
                if (value && all)
                    std::snprintf(
                        share, sizeof share, "%.1f",
                        100 * cost::performance_retention(value->mean, all->mean, lower_is_better(what.metric)));
                cells.emplace_back(share);
            }
            table.rows.push_back(std::move(cells));
        }
        constexpr std::size_t most_tasks = 4;  // a page's width
        if (!some || chosen.size() > most_tasks) return std::nullopt;
        return table;
    }

    Panel panel(const Measured& what) const {
        const auto length = evaluations_.chosen_length(what, options_);
        Panel panel;
        panel.x.label = evaluations_.title(what);
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

FigureData scaling(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "scaling", options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kScaling{
    .name = "scaling",
    .description = "a metric against the number of parameters, dots by size",
    .needs = "evaluations of several sizes",
    .of_others = scaling,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "metric", "length"},
};

}  // namespace headscope::figures
