// SPDX-License-Identifier: GPL-3.0-or-later
// Perplexity (or another metric) against the length of the context (Deconstructing Attention, Table 4; Lazy Attention,
// Fig. 6): a line a model, a logarithmic axis, the training length marked.

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

struct Lines {
    Panel panel;
    std::size_t most_points = 0;
};

/// With its size where the models are of several.
std::vector<std::string> group_names(const EvaluationGroups& evaluations) {
    const auto sizes = model_sizes(evaluations.groups());
    std::vector<std::string> names;
    for (const auto& group : evaluations.groups()) {
        const auto size = static_cast<double>(sizes[size_index(sizes, group.parameters)]);
        names.push_back(group.label + (sizes.size() > 1 ? ", " + short_count(size) : ""));
    }
    return names;
}

Lines lines_of(const EvaluationGroups& evaluations, const Measured& what, std::vector<std::string>& names,
               const std::vector<std::string>& all_names) {
    Lines lines;
    Curves curves;
    std::vector<double> values;
    std::set<std::int64_t> lengths, trained;
    for (std::size_t g = 0; g < all_names.size(); ++g) {
        const auto& group = evaluations.groups()[g];
        const auto measured = group.values.find(what);
        if (measured == group.values.end()) continue;
        Curve line;
        line.name = all_names[g];
        for (const auto& [length, value] : measured->second) {
            if (length <= 0) continue;
            line.x.push_back(static_cast<double>(length));
            line.y.push_back(value.mean);
            line.error.push_back(value.error);
            values.push_back(value.mean);
            lengths.insert(length);
        }
        if (line.x.empty()) continue;
        if (group.training_length > 0) trained.insert(group.training_length);
        colour_member(line, g, all_names.size());
        if (std::find(names.begin(), names.end(), line.name) == names.end()) names.push_back(line.name);
        lines.most_points = std::max(lines.most_points, line.x.size());
        Curve dots = line;
        dots.points = true;
        dots.dot = 0.85;
        line.error.clear();
        curves.curves.push_back(std::move(line));
        curves.curves.push_back(std::move(dots));
    }
    Panel& panel = lines.panel;
    panel.title = measured_title(what);
    panel.content = std::move(curves);
    panel.x.label = "context length (tokens)";
    panel.x.scale = ScaleKind::logarithmic;
    for (const auto length : lengths) panel.x.ticks.push_back({static_cast<double>(length), std::to_string(length)});
    if (!lengths.empty()) {
        std::int64_t high = *lengths.rbegin();
        for (const auto length : trained)
            if (length <= 4 * high) high = std::max(high, length);
        panel.x.range = std::pair(static_cast<double>(*lengths.begin()) / 1.15, static_cast<double>(high) * 1.15);
    }
    panel.y.scale = scale_for(values);
    for (const auto length : trained) {
        if (lengths.empty() || length > 4 * *lengths.rbegin()) continue;
        panel.markers.push_back({true, static_cast<double>(length), "trained at " + std::to_string(length)});
    }
    return lines;
}

}  // namespace

FigureData context_perplexity(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations);
    const auto chosen = evaluations.chosen(options);
    const auto all_names = group_names(evaluations);
    std::vector<std::string> names;
    FigureData figure;
    figure.title = "Results by context length";
    std::vector<Measured> drawn;
    for (const auto& what : chosen) {
        Lines lines = lines_of(evaluations, what, names, all_names);
        if (lines.most_points < 2) continue;
        figure.panels.push_back(std::move(lines.panel));
        drawn.push_back(what);
    }
    if (drawn.empty()) {
        throw Error(ErrorCode::usage, "figure context-perplexity",
                    "expected results at two lengths at least: evaluate --length N,N,...", "found one");
    }
    if (drawn.size() == 1) {
        figure.title = measured_title(drawn[0]) + " by context length";
        figure.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(figure.title[0])));
        figure.panels[0].title.clear();
        figure.panels[0].y.label = measured_title(drawn[0]);
    }
    figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 55;
    figure.panel_aspect = drawn.size() == 1 ? 0.6 : 0.8;
    for (std::size_t i = 0; i < all_names.size(); ++i) {
        if (std::find(names.begin(), names.end(), all_names[i]) == names.end()) continue;
        Curve coloured;
        colour_member(coloured, i, all_names.size());
        figure.legend.push_back({all_names[i], coloured.colour, coloured.shade});
    }
    figure.notes.push_back(evaluations.error_note());
    figure.table = [table = evaluation_table(evaluations.groups(), drawn)] { return table; };
    return figure;
}

}  // namespace headscope::figures
