// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks (Deconstructing Attention, Fig. 3; NAtS-L and Lazy Attention, their tables): a panel a task, a row a
// model, a dot with one standard error, dashed lines where chance and majority are, the best model marked.

#include <algorithm>
#include <cmath>
#include <map>

#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/figures/task_averages.h"
#include "core/figures/task_table.h"

namespace headscope::figures {
namespace {

constexpr double kBestDot = 1.5;
constexpr double kNarrowest = 28;  ///< mm: "word perplexity" below a panel

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), significance_(options.significance), tasks_(evaluations, options) {}

    FigureData make() {
        std::vector<Measured> chosen;
        for (const auto& task : tasks_.tasks()) chosen.push_back(task.what);
        FigureData figure = rows_figure(evaluations_, chosen, tasks_.models().size(), [this](const Measured& what) {
            const auto& all = tasks_.tasks();
            return panel(*std::find_if(all.begin(), all.end(), [&](const auto& task) { return task.what == what; }));
        });
        if (tasks_.average() && tasks_.average()->some()) {
            figure.panels.push_back(panel(*tasks_.average()));
            figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
        }
        const bool shots = std::any_of(chosen.begin(), chosen.end(), [](const auto& what) { return what.shots > 0; });
        figure.narrowest_mm = kNarrowest;
        figure.title = shots ? "Tasks" : "Zero-shot tasks";
        figure.notes = notes();
        figure.table = [table = table()] { return table; };
        figure.latex = [grid = TaskGrid(tasks_, true)] { return grid.latex(grid.order(-1, false)); };
        return figure;
    }

private:
    Panel panel(const TaskResults& task) const {
        const double unit = task.share ? 100 : 1;
        Panel panel;
        panel.title = task.average
                          ? task.title
                          : spaced(task.what.task) + (task.what.shots > 0 ? ", " + shots_text(task.what.shots) : "") +
                                evaluations_.text_words(task.what);
        panel.x.label = task.average ? "average (%)" : spaced(task.what.metric) + (task.share ? " (%)" : "");
        panel.y = label_axis(tasks_.models());
        std::vector<double> means, reach;
        for (const auto& value : task.values)
            if (value) means.push_back(unit * value->value);
        panel.x.scale = scale_for(means);
        Curves curves;
        const std::size_t rows = task.values.size();
        for (std::size_t m = 0; m < rows; ++m) {
            if (!task.values[m]) continue;
            const TaskValue& value = *task.values[m];
            const double x = unit * value.value, y = static_cast<double>(rows - 1 - m);
            if (!std::isfinite(x)) continue;
            Curve dot{tasks_.models()[m], {x}, {y}, {unit * value.error}};
            dot.points = true;
            dot.error_of_x = true;
            colour_member(dot, m, rows);
            const bool best = value.rank == Rank::best;
            if (best) dot.dot = kBestDot;
            if (best || value.significant())
                curves.labels.push_back({x, y, std::string(best ? "best" : "") + (value.significant() ? "*" : "")});
            add_reach(reach, {x, unit * value.error, {}}, panel.x.scale);
            curves.curves.push_back(std::move(dot));
        }
        const auto mark = [&](const char* name, const std::optional<double>& value) {
            // A guesser's perplexity is a hundred thousand and more: the table has it.
            if (!value || !task.share || !std::isfinite(unit * *value)) return;
            panel.markers.push_back({true, unit * *value, name});
            reach.push_back(unit * *value);
        };
        mark("chance", task.baselines.chance);
        mark("majority", task.baselines.majority);
        if (panel.markers.size() > 1) {  // the labels would lie on each other
            for (auto& marker : panel.markers) marker.label.clear();
        }
        panel.x.range = padded_range(reach, panel.x.scale);
        panel.content = std::move(curves);
        return panel;
    }

    std::vector<std::string> notes() const {
        std::string first = evaluations_.most_seeds() > 1 ? evaluations_.error_note() : "Bars: one standard error.";
        if (tasks_.models().size() > 1) first += " Larger dot: the best.";
        bool baselines = false;
        std::string lower;
        std::map<std::int64_t, std::string> by_shots;
        const auto add = [](std::string& list, const std::string& name) { list += (list.empty() ? "" : "; ") + name; };
        for (const auto& task : tasks_.tasks()) {
            baselines = baselines || task.baselines.chance || task.baselines.majority;
            if (task.lower) add(lower, task.title);
            if (task.what.shots > 0) add(by_shots[task.what.shots], task.what.task);
        }
        if (baselines) first += " Dashed: who guesses (chance), and who always gives the commonest answer (majority).";
        std::vector<std::string> notes{first};
        if (const TaskAverage* paper = find_task_average(tasks_.average_name())) {
            std::string missing;
            for (const AverageEntry& entry : paper->entries) {
                const auto& all = evaluations_.measured();
                if (std::none_of(all.begin(), all.end(), [&](const Measured& what) {
                        return what.task == entry.task && what.metric == entry.metric;
                    }))
                    missing += (missing.empty() ? "" : ", ") + std::string(entry.task);
            }
            if (!missing.empty())
                notes.push_back("No average of " + std::string(paper->title) + ": it needs " + missing + " too.");
        }
        if (!significance_.empty())
            notes.push_back("*: " + significance_ +
                            " differs from the best of the others, p < 0.05: Welch's t over "
                            "seeds, else the paired t over items.");
        if (!lower.empty()) notes.push_back("Lower is better: " + lower + ".");
        for (const auto& [shots, names] : by_shots)
            notes.push_back("Examples in the prompt, " + std::to_string(shots) + ": " + names + ".");
        return notes;
    }

    /// A row a task and model, the average behind them; a baseline is a model without anything but its name and value.
    Table table() const {
        std::vector<std::string> task_names, metric, text, subset, model, mixer, layout, skipped, rank;
        std::vector<std::int64_t> shots, parameters, length, seeds;
        std::vector<double> value, error, p;
        const auto add = [&](const TaskResults& task, const std::string& name, const EvaluationGroup& group,
                             const TaskValue& one) {
            task_names.push_back(task.average ? "average" : task.what.task);
            metric.push_back(task.average ? tasks_.average_name() : task.what.metric);
            text.push_back(task.what.text);
            subset.push_back(task.what.subset);
            shots.push_back(task.what.shots);
            model.push_back(name);
            mixer.push_back(group.mixer);
            layout.push_back(group.layout);
            skipped.emplace_back(group.skipped ? "yes" : "no");
            parameters.push_back(group.parameters);
            length.push_back(one.length);
            value.push_back(one.value);
            error.push_back(one.error);
            p.push_back(one.p);
            seeds.push_back(one.seeds);
            rank.emplace_back(one.rank == Rank::best ? "best" : one.rank == Rank::second ? "second" : "");
        };
        std::vector<TaskResults> all = tasks_.tasks();
        if (tasks_.average()) all.push_back(*tasks_.average());
        for (const auto& task : all) {
            for (std::size_t m = 0; m < task.values.size(); ++m)
                if (task.values[m]) add(task, tasks_.models()[m], evaluations_.groups()[m], *task.values[m]);
            for (const auto& [name, baseline] :
                 {std::pair("chance", task.baselines.chance), std::pair("majority", task.baselines.majority)})
                if (baseline) add(task, name, {}, {*baseline});
        }
        Table made{{{"task", std::move(task_names)},
                    {"metric", std::move(metric)},
                    {"shots", std::move(shots)},
                    {"model", std::move(model)},
                    {"mixer", std::move(mixer)},
                    {"layout", std::move(layout)},
                    {"skipped", std::move(skipped)},
                    {"parameters", std::move(parameters)},
                    {"length", std::move(length)},
                    {"value", std::move(value)},
                    {"error", std::move(error)},
                    {"seeds", std::move(seeds)},
                    {"rank", std::move(rank)},
                    {"text", std::move(text)},
                    {"subset", std::move(subset)}}};
        if (!significance_.empty()) made.columns.push_back({"p", std::move(p)});
        return made;
    }

    const EvaluationGroups& evaluations_;
    std::string significance_;
    TaskTable tasks_;
};

FigureData tasks(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "tasks", options.names);
    return Maker(evaluations, options).make();
}

/// LongBench: a part for each class of lengths; in LaTeX a table for each.
FigureData longbench(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "longbench", options.names);
    FigureData figure = Maker(evaluations, options).make();
    figure.title = "LongBench";
    figure.latex = [table = TaskTable(evaluations, options)] {
        std::string text;
        for (const std::string& subset : table.subsets()) {
            const TaskGrid grid(table.of_subset(subset), true);
            text += "% " + (subset.empty() ? std::string("all lengths") : subset + " words") + "\n" +
                    grid.latex(grid.order(-1, false));
        }
        return text;
    };
    return figure;
}

}  // namespace

extern const Recipe kLongBench{
    .name = "longbench",
    .description = "LongBench: a panel per task and class of lengths, a dot per model with its error, the best marked",
    .needs = "evaluations of LongBench's tasks",
    .of_others = longbench,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "significance", "length"},
    .latex = true,
};

extern const Recipe kTasks{
    .name = "tasks",
    .description =
        "lm-eval's tasks: a panel per task, a dot per model with "
        "its error, the level of guessing, the best marked",
    .needs = "evaluations of lm-eval's tasks",
    .of_others = tasks,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "metric", "average", "significance", "length"},
    .latex = true,
};

}  // namespace headscope::figures
