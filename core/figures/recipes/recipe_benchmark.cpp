// SPDX-License-Identifier: GPL-3.0-or-later
// Benchmarks of tuned models (the thesis, Tables 3.1 and 3.7): a panel a task and one for the average, a row a variant,
// a dot with its deviation over seeds; a table with PRR and PEoP.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "core/figures/benchmark/benchmark_table.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/figures/significance/significance.h"

namespace headscope::figures {
namespace {

std::string cell(double value, double unit, int digits) {
    if (!std::isfinite(value)) return "–";
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, unit * value);
    return text;
}

Panel panel(const BenchmarkTable& table, std::size_t column) {
    std::vector<std::string> names;
    for (const BenchmarkVariant& variant : table.variants()) names.push_back(variant.name);
    Panel panel;
    panel.title = spaced(table.column(column));
    const auto& tasks = table.set().tasks;
    panel.x.label = (column < tasks.size() ? spaced(std::string(tasks[column].metric)) : "average") + " (%)";
    panel.y = label_axis(names);
    Curves curves;
    std::vector<double> reach;
    for (std::size_t v = 0; v < names.size(); ++v) {
        const BenchmarkValue& value = table.variants()[v].values[column];
        if (!std::isfinite(value.mean)) continue;
        const double x = 100 * value.mean, y = static_cast<double>(names.size() - 1 - v);
        Curve dot{names[v], {x}, {y}, {100 * value.deviation}};
        dot.points = dot.error_of_x = true;
        colour_member(dot, v, names.size());
        if (value.rank == Rank::best) dot.dot = 1.5;
        if (value.p < kSignificant) curves.labels.push_back({x, y, "*"});
        add_reach(reach, {x, 100 * value.deviation, {}}, ScaleKind::linear);
        curves.curves.push_back(std::move(dot));
    }
    panel.x.range = padded_range(reach, ScaleKind::linear);
    panel.content = std::move(curves);
    return panel;
}

TextTable text_table(const BenchmarkTable& table) {
    TextTable text;
    text.header = {"variant"};
    for (std::size_t c = 0; c < table.columns(); ++c) text.header.push_back(table.column(c));
    text.header.insert(text.header.end(), {"PRR %", "PEoP"});
    for (const BenchmarkVariant& variant : table.variants()) {
        std::vector<std::string> row{variant.name};
        for (const BenchmarkValue& value : variant.values) {
            std::string score = cell(value.mean, 100, 1);
            if (value.p < kSignificant) score += "*";
            if (std::isfinite(value.deviation)) score += " (" + cell(value.deviation, 100, 1) + ")";
            row.push_back(score);
        }
        row.push_back(cell(variant.values.back().prr, 100, 2));
        row.push_back(cell(variant.values.back().peop, 1, 2));
        text.rows.push_back(std::move(row));
    }
    return text;
}

FigureData benchmark(const FigureInputs& inputs, const FigureOptions& options) {
    const auto table = std::make_shared<const BenchmarkTable>(inputs.evaluations, options);
    FigureData figure;
    figure.title = std::string(table->set().title);
    for (std::size_t c = 0; c < table->columns(); ++c) figure.panels.push_back(panel(*table, c));
    figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
    figure.reflow = figure.share_y = true;
    figure.narrowest_mm = 28;
    figure.panel_height_mm = 12 + 6.0 * static_cast<double>(table->variants().size());
    figure.text_table = text_table(*table);
    figure.notes.push_back(
        "Mean over seeds (standard deviation); average: over tasks, of the seeds that have all of them. PRR: the "
        "average as a share of " +
        table->baseline().name + "'s.");
    if (const BenchmarkVariant* smallest = table->smallest())
        figure.notes.push_back("PEoP: increase of the average over " + smallest->name +
                               "'s, in percent, for each percent of additional attention weights.");
    if (!options.significance.empty())
        figure.notes.push_back("*: " + options.significance +
                               " differs from the best of the others, p < 0.05: Welch's t over seeds, else the paired "
                               "t over items.");
    figure.notes.insert(figure.notes.end(), table->notes().begin(), table->notes().end());
    figure.table = [table] { return table->numbers(); };
    figure.latex = [table] { return table->latex(); };
    return figure;
}

}  // namespace

extern const Recipe kBenchmark{
    .name = "benchmark",
    .description =
        "GLUE, SuperGLUE and SQuAD of tuned models: a panel per task, a dot per variant with its deviation over seeds; "
        "a table with averages, PRR and PEoP",
    .needs = "evaluations of tuned models, --set NAME and --baseline VARIANT",
    .of_others = benchmark,
    .others = RecipeInputs::evaluations,
    .options = {"set", "baseline", "smallest", "significance", "length"},
    .latex = true,
};

}  // namespace headscope::figures
