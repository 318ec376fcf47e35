// SPDX-License-Identifier: GPL-3.0-or-later
// Axes, ranges, sizes of dots and tables that the recipes of evaluations share.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/cost/thesis.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {

std::vector<std::int64_t> model_sizes(const std::vector<EvaluationGroup>& groups) {
    std::set<std::int64_t> all;
    for (const auto& group : groups) all.insert(group.parameters);
    std::vector<std::int64_t> sizes;
    for (const auto parameters : all) {
        const bool same = !sizes.empty() && static_cast<double>(parameters) <= 1.25 * static_cast<double>(sizes.back());
        if (same)
            sizes.back() = parameters;
        else
            sizes.push_back(parameters);
    }
    return sizes;
}

std::size_t size_index(const std::vector<std::int64_t>& sizes, std::int64_t parameters) {
    const auto it = std::lower_bound(sizes.begin(), sizes.end(), parameters);
    return static_cast<std::size_t>(std::min(it - sizes.begin(), std::ssize(sizes) - 1));
}

ScaleKind scale_for(const std::vector<double>& values) {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        if (value <= 0) return ScaleKind::linear;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    return high > 10 * low ? ScaleKind::logarithmic : ScaleKind::linear;
}

double elasticity(const std::string& mixer, double score, std::int64_t weights, double of_smallest,
                  std::int64_t smallest_weights, bool lower) {
    const auto* type = mixers::find_type(mixer);
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (weights < 0 || smallest_weights < 0 || (type != nullptr && !type->in_decoders)) return none;
    const double value = cost::performance_elasticity(score, of_smallest, static_cast<double>(weights),
                                                      static_cast<double>(smallest_weights), lower);
    return std::isfinite(value) ? value : none;
}

void add_reach(std::vector<double>& reach, const EvaluationValue& value, ScaleKind scale) {
    reach.push_back(value.mean);
    if (!std::isfinite(value.error)) return;
    reach.push_back(value.mean + value.error);
    if (scale != ScaleKind::logarithmic || value.mean > value.error) reach.push_back(value.mean - value.error);
}

std::pair<double, double> padded_range(const std::vector<double>& values, ScaleKind scale) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    if (!(low <= high)) return {0, 1};
    constexpr double share = 0.07;
    if (scale == ScaleKind::logarithmic) {
        const double room = std::max(1.02, std::pow(high / low, share));
        return {low / room, high * room};
    }
    const double room = high > low ? share * (high - low) : std::max(0.05, share * std::abs(high));
    return {low - room, high + room};
}

double size_dot(const std::vector<std::int64_t>& sizes, std::int64_t parameters) {
    constexpr double smallest = 0.6, largest = 1.7;
    if (sizes.size() < 2) return 1;
    const auto rank = static_cast<double>(size_index(sizes, parameters));
    return smallest + (largest - smallest) * rank / static_cast<double>(sizes.size() - 1);
}

Axis label_axis(const std::vector<std::string>& labels) {
    Axis axis;
    const auto rows = static_cast<double>(labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
        axis.ticks.push_back({rows - 1 - static_cast<double>(i), labels[i]});
    axis.range = std::pair(-0.6, rows - 0.4);
    return axis;
}

double mark_training(Panel& panel, const TrainingLengths& trained, std::int64_t low, std::int64_t high) {
    constexpr std::size_t most_names = 2;
    std::int64_t end = high;
    for (const auto& [length, names] : trained) {
        if (static_cast<double>(length) > 4 * static_cast<double>(high) || length < low) continue;
        end = std::max(end, length);
        std::string label = "trained at " + std::to_string(length);
        if (trained.size() > 1 && names.size() > most_names)
            label += ": " + std::to_string(names.size()) + " models";
        else if (trained.size() > 1)
            for (const auto& name : names) label += (&name == &names.front() ? ": " : ", ") + name;
        panel.markers.push_back({true, static_cast<double>(length), label});
    }
    return static_cast<double>(end);
}

void set_length_axis(Panel& panel, const std::set<std::int64_t>& lengths, const TrainingLengths& trained) {
    panel.x.label = "context length (tokens)";
    panel.x.scale = ScaleKind::logarithmic;
    if (lengths.empty()) return;
    const double high = mark_training(panel, trained, *lengths.begin(), *lengths.rbegin());
    for (const auto length : lengths) panel.x.ticks.push_back({static_cast<double>(length), std::to_string(length)});
    panel.x.range = std::pair(static_cast<double>(*lengths.begin()) / 1.15, high * 1.15);
}

FigureData rows_figure(const EvaluationGroups& evaluations, const std::vector<Measured>& chosen, std::size_t rows,
                       const std::function<Panel(const Measured&)>& panel) {
    check_panels(chosen.size());
    FigureData figure;
    for (const auto& what : chosen) figure.panels.push_back(panel(what));
    figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 24;
    figure.share_y = true;
    figure.panel_height_mm = 12 + 6.0 * static_cast<double>(rows);
    figure.table = [table = evaluation_table(evaluations.groups(), chosen)] { return table; };
    return figure;
}

std::vector<std::string> reading_notes(const EvaluationGroups& evaluations, const std::vector<Measured>& chosen,
                                       const FigureOptions& options) {
    std::vector<std::string> notes;
    for (const auto& what : chosen) {
        const bool named = !what.text.empty() && evaluations.text_words(what).empty();
        notes.push_back(evaluations.title(what) + ": at " + std::to_string(evaluations.chosen_length(what, options)) +
                        " tokens" + (named ? " of " + escaped(what.text) : "") + ", " +
                        (lower_is_better(what.metric) ? "lower" : "higher") + " is better.");
    }
    return notes;
}

Table evaluation_table(const std::vector<EvaluationGroup>& groups, const std::vector<Measured>& chosen) {
    std::vector<std::string> task, metric, text, subset, mixer, layout, skipped, model;
    std::vector<std::int64_t> parameters, length, shots, seeds, training_length;
    std::vector<double> value, error;
    for (const Measured& what : chosen) {
        for (const auto& group : groups) {
            const auto measured = group.values.find(what);
            if (measured == group.values.end()) continue;
            for (const auto& [at, one] : measured->second) {
                task.push_back(what.task);
                metric.push_back(what.metric);
                text.push_back(what.text);
                subset.push_back(what.subset);
                mixer.push_back(group.mixer);
                layout.push_back(group.layout);
                skipped.emplace_back(group.skipped ? "yes" : "no");
                parameters.push_back(group.parameters);
                length.push_back(at);
                shots.push_back(what.shots);
                value.push_back(one.mean);
                error.push_back(one.error);
                seeds.push_back(std::ssize(one.each));
                model.push_back(group.name());
                training_length.push_back(group.training_length);
            }
        }
    }
    return {{{"task", std::move(task)},
             {"metric", std::move(metric)},
             {"mixer", std::move(mixer)},
             {"layout", std::move(layout)},
             {"skipped", std::move(skipped)},
             {"parameters", std::move(parameters)},
             {"length", std::move(length)},
             {"shots", std::move(shots)},
             {"value", std::move(value)},
             {"error", std::move(error)},
             {"seeds", std::move(seeds)},
             {"model", std::move(model)},
             {"training_length", std::move(training_length)},
             {"text", std::move(text)},
             {"subset", std::move(subset)}}};
}

}  // namespace headscope::figures
