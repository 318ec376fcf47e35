// SPDX-License-Identifier: GPL-3.0-or-later
// RULER's retrieval tasks (NAtS-L, Table 2 and Fig. 7): a panel a task, a line a model, the share of right answers
// against the length, the training length marked; and all of it as a table.

#include <algorithm>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

/// More models than these are no table on a page.
constexpr std::size_t kMostColumns = 8;

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), chosen_(evaluations.chosen(options)), names_(group_names(evaluations.groups())) {
        // The mean of the others comes last.
        std::stable_partition(chosen_.begin(), chosen_.end(),
                              [](const Measured& what) { return what.task != "ruler_retrieval"; });
        check_panels(chosen_.size());
    }

    FigureData make() {
        FigureData figure;
        figure.title = chosen_.size() == 1 ? "RULER: " + title(chosen_[0]) : "Retrieval tasks of RULER";
        for (const auto& what : chosen_) figure.panels.push_back(panel(what));
        figure.columns = std::min<std::int64_t>(4, std::ssize(figure.panels));
        figure.reflow = true;
        figure.narrowest_mm = 28;
        figure.share_y = true;
        figure.panel_aspect = figure.panels.size() == 1 ? 0.6 : 0.85;
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const Curve coloured = curve(g);
            figure.legend.push_back({names_[g], coloured.colour, coloured.shade});
        }
        figure.notes.push_back("Share of the expected answers that greedy decoding contains. " + error_note());
        if (groups.size() <= kMostColumns) figure.text_table = text_table();
        figure.table = [table = evaluation_table(groups, chosen_)] { return table; };
        return figure;
    }

private:
    std::string error_note() const {
        if (evaluations_.most_seeds() > 1) return evaluations_.error_note();
        return "Bars: standard error over items.";
    }
    std::string title(const Measured& what) const { return spaced(what.task) + evaluations_.text_words(what); }
    Curve curve(std::size_t group) const {
        Curve curve;
        curve.name = names_[group];
        colour_member(curve, group, evaluations_.groups().size());
        return curve;
    }

    Panel panel(const Measured& what) const {
        Panel panel;
        Curves curves;
        std::set<std::int64_t> lengths;
        TrainingLengths trained;
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const auto measured = groups[g].values.find(what);
            if (measured == groups[g].values.end()) continue;
            Curve line = curve(g);
            for (const auto& [length, value] : measured->second) {
                if (length <= 0) continue;
                line.x.push_back(static_cast<double>(length));
                line.y.push_back(value.mean);
                line.error.push_back(value.error);
                lengths.insert(length);
            }
            if (groups[g].training_length > 0) trained[groups[g].training_length].push_back(names_[g]);
            Curve dots = line;
            dots.points = true;
            dots.dot = 0.85;
            line.error.clear();
            curves.curves.push_back(std::move(line));
            curves.curves.push_back(std::move(dots));
        }
        panel.title = chosen_.size() > 1 ? title(what) : "";
        panel.y.label = "score";
        panel.y.range = std::pair(-0.04, 1.04);
        panel.content = std::move(curves);
        set_length_axis(panel, lengths, trained);
        return panel;
    }

    TextTable text_table() const {
        TextTable table;
        table.header = {"task", "length"};
        table.header.insert(table.header.end(), names_.begin(), names_.end());
        for (const auto& what : chosen_) {
            for (const std::int64_t length : evaluations_.lengths(what)) {
                std::vector<std::string> row{title(what), std::to_string(length)};
                for (const auto& group : evaluations_.groups()) {
                    const auto* value = group.find(what, length);
                    row.push_back(value == nullptr ? "–" : short_number(value->mean));
                }
                table.rows.push_back(std::move(row));
            }
        }
        return table;
    }

    const EvaluationGroups& evaluations_;
    std::vector<Measured> chosen_;
    std::vector<std::string> names_;
};

FigureData ruler(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "ruler", options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kRuler{
    .name = "ruler",
    .description =
        "RULER's retrieval tasks: a panel per task, the share of "
        "right answers against the length",
    .needs = "evaluations of RULER's tasks",
    .of_others = ruler,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task"},
};

}  // namespace headscope::figures
