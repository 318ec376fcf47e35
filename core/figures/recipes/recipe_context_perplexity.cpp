// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity (or another metric) against the length of the context (Deconstructing Attention, Table 4; Lazy Attention,
// Fig. 6): a line a mixer, a panel a layout with Standard in each, a logarithmic axis, the training lengths marked.
// Beyond its own training length a line is thin. Where a panel has several models of one mixer, each model has its own
// colour.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/mixers/types/type.h"

namespace headscope::figures {
namespace {

/// Title of a panel: a layout, separate if blocks were skipped.
std::string part_of(const EvaluationGroup& group) {
    return group.layout + (group.skipped ? ", skipped" : "");
}

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options) : evaluations_(evaluations) {
        sizes_ = model_sizes(evaluations.groups());
        names_ = group_names(evaluations.groups());
        for (const auto& what : evaluations.chosen(options)) {
            if (has_lengths(what)) drawn_.push_back(what);
        }
        if (drawn_.empty()) {
            throw Error(ErrorCode::usage, "figure context-perplexity",
                        "expected results at two lengths at least: evaluate --length N,N,...", "found one");
        }
        std::vector<std::pair<std::size_t, std::string>> parts;
        for (const auto& group : evaluations.groups()) {
            if (group.standard()) continue;
            const std::pair part(2 * layout_rank(group.layout) + (group.skipped ? 1 : 0), part_of(group));
            if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
        }
        std::sort(parts.begin(), parts.end());
        for (auto& part : parts) parts_.push_back(std::move(part.second));
        if (parts_.empty()) parts_.emplace_back();
        find_members();
        check_panels(parts_.size() * drawn_.size());
    }

    FigureData make() {
        FigureData figure;
        figure.title =
            drawn_.size() == 1 ? evaluations_.title(drawn_[0]) + " by context length" : "Results by context length";
        figure.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(figure.title[0])));
        for (const auto& what : drawn_) {
            const std::size_t first = figure.panels.size();
            std::vector<EvaluationValue> values;
            for (const auto& part : parts_) figure.panels.push_back(panel(what, part, values));
            std::vector<double> means, reach;
            for (const auto& value : values) means.push_back(value.mean);
            const ScaleKind scale = scale_for(means);
            for (const auto& value : values) add_reach(reach, value, scale);
            for (std::size_t i = first; i < figure.panels.size(); ++i) {
                figure.panels[i].y.scale = scale;
                figure.panels[i].y.range = padded_range(reach, scale);
            }
        }
        figure.columns = parts_.size() > 1 ? std::ssize(parts_) : std::min<std::int64_t>(3, std::ssize(drawn_));
        figure.reflow = true;
        figure.narrowest_mm = 24;
        figure.share_y = parts_.size() > 1;
        figure.panel_aspect = figure.panels.size() == 1 ? 0.6 : 0.9;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            Curve coloured;
            colour_member(coloured, i, members_.size());
            figure.legend.push_back({members_[i], coloured.colour, coloured.shade});
        }
        figure.notes.push_back(std::string(sizes_.size() > 1 ? "Larger dots: larger models. " : "") +
                               (beyond_ ? "Thin lines: longer than the training length. " : "") +
                               evaluations_.error_note());
        figure.table = [table = evaluation_table(evaluations_.groups(), drawn_)] { return table; };
        return figure;
    }

private:
    bool has_lengths(const Measured& what) const { return evaluations_.lengths(what).size() > 1; }

    /// Colours are those of mixers, or of models where one mixer has several of a size in a panel, or names are given.
    void find_members() {
        const auto& groups = evaluations_.groups();
        std::set<std::tuple<std::string, std::string, std::size_t>> known;
        for (const auto& group : groups)
            of_models_ |= !known.emplace(group.mixer, part_of(group), size_index(sizes_, group.parameters)).second ||
                          !group.given.empty();
        if (of_models_) members_ = names_;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (of_models_) {
                member_of_.push_back(g);
                continue;
            }
            const std::string name = mixers::column_title_of(groups[g].mixer);
            const auto place = std::find(members_.begin(), members_.end(), name);
            member_of_.push_back(static_cast<std::size_t>(place - members_.begin()));
            if (place == members_.end()) members_.push_back(name);
        }
    }

    Panel panel(const Measured& what, const std::string& part, std::vector<EvaluationValue>& values) {
        Panel panel;
        Curves curves;
        std::vector<Curve> beyond;
        std::set<std::int64_t> lengths;
        TrainingLengths trained;
        const auto& groups = evaluations_.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const auto& group = groups[g];
            const auto measured = group.values.find(what);
            const bool here = group.standard() ? !group.skipped : part_of(group) == part;
            if (measured == group.values.end() || !here) continue;
            Curve line;
            line.name = of_models_ ? names_[g] : group.label;
            for (const auto& [length, value] : measured->second) {
                if (length <= 0) continue;
                line.x.push_back(static_cast<double>(length));
                line.y.push_back(value.mean);
                line.error.push_back(value.error);
                values.push_back(value);
                lengths.insert(length);
            }
            if (group.training_length > 0) trained[group.training_length].push_back(names_[g]);
            colour_member(line, member_of_[g], members_.size());
            Curve dots = line;
            dots.points = true;
            dots.dot = 0.85 * size_dot(sizes_, group.parameters);
            line.error.clear();
            if (auto rest = cut(line, group.training_length)) beyond.push_back(std::move(*rest));
            curves.curves.push_back(std::move(line));
            curves.curves.push_back(std::move(dots));
        }
        beyond_ |= !beyond.empty();
        std::move(beyond.begin(), beyond.end(), std::back_inserter(curves.curves));
        panel.title = parts_.size() > 1 ? part : drawn_.size() > 1 ? evaluations_.title(what) : "";
        panel.y.label = parts_.size() > 1 || drawn_.size() == 1 ? evaluations_.title(what) : "";
        panel.content = std::move(curves);
        set_length_axis(panel, lengths, trained);
        return panel;
    }

    /// Cuts a line at the last length that does not pass `trained` (0: does not cut); the rest, thin, begins there.
    static std::optional<Curve> cut(Curve& line, std::int64_t trained) {
        const auto passed = std::upper_bound(line.x.begin(), line.x.end(), static_cast<double>(trained));
        if (trained <= 0 || passed == line.x.end()) return std::nullopt;
        const auto kept = passed - line.x.begin(), first = std::max<std::ptrdiff_t>(0, kept - 1);
        Curve rest = line;
        rest.thin = true;
        rest.x.erase(rest.x.begin(), rest.x.begin() + first);
        rest.y.erase(rest.y.begin(), rest.y.begin() + first);
        line.x.resize(static_cast<std::size_t>(kept));
        line.y.resize(static_cast<std::size_t>(kept));
        return rest;
    }

    const EvaluationGroups& evaluations_;
    std::vector<Measured> drawn_;
    std::vector<std::string> names_, parts_;
    std::vector<std::string> members_;    ///< what has a colour: mixers, or models
    std::vector<std::size_t> member_of_;  ///< of each group
    std::vector<std::int64_t> sizes_;
    bool of_models_ = false, beyond_ = false;
};

FigureData context_perplexity(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "context-perplexity", options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kContextPerplexity{
    .name = "context-perplexity",
    .description = "perplexity, or another metric, against the length of the context",
    .needs = "evaluations at several lengths",
    .of_others = context_perplexity,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "metric"},
};

}  // namespace headscope::figures
