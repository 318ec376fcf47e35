// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/task_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "core/figures/recipe.h"
#include "core/figures/significance/significance.h"
#include "core/figures/task_averages.h"

namespace headscope::figures {
namespace {

/// Tasks of which the papers print acc_norm, whatever they call it.
constexpr std::array<std::string_view, 3> kPrintedNormed{"arc_challenge", "hellaswag", "openbookqa"};
/// From here on a number is printed by its first digits.
constexpr double kLong = 1e5;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Which of the results are shown. A task's accuracies are two ways to count the same answers, its perplexities to
/// divide the same sum: one of each.
class Choice {
public:
    Choice(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations), options_(options) {}

    bool shows(const Measured& what) const {
        if (!options_.task.empty() && what.task != options_.task) return false;
        if (!options_.metric.empty() && !is_accuracy(options_.metric)) return what.metric == options_.metric;
        if (is_accuracy(what.metric)) return what.metric == accuracy(what);
        if (what.metric == kChanceAdjusted) return false;  // by --metric alone
        if (what.metric == "bits_per_byte" || what.metric == "byte_perplexity") return !has(what, "word_perplexity");
        return true;
    }

private:
    bool has(Measured what, const std::string& metric) const {
        what.metric = metric;
        const auto& all = evaluations_.measured();
        return std::find(all.begin(), all.end(), what) != all.end();
    }
    std::string accuracy(const Measured& what) const {
        const bool normed = options_.metric.empty() ? std::find(kPrintedNormed.begin(), kPrintedNormed.end(),
                                                                what.task) != kPrintedNormed.end()
                                                    : options_.metric == "acc_norm";
        const std::string wanted = normed ? "acc_norm" : "acc", other = normed ? "acc" : "acc_norm";
        return has(what, wanted) ? wanted : other;
    }

    const EvaluationGroups& evaluations_;
    const FigureOptions& options_;
};

std::optional<TaskValue> value_of(const EvaluationGroup& group, const Measured& what, const FigureOptions& options) {
    const auto measured = group.values.find(what);
    if (measured == group.values.end() || measured->second.empty()) return std::nullopt;
    const auto at = options.length ? measured->second.find(*options.length) : std::prev(measured->second.end());
    if (at == measured->second.end()) return std::nullopt;
    return TaskValue{at->second.mean, at->second.error, at->first, std::ssize(at->second.each)};
}

TaskResults results_of(const EvaluationGroups& evaluations, const Measured& what, const FigureOptions& options) {
    TaskResults results;
    results.what = what;
    results.title = evaluations.title(what);
    results.share = is_accuracy(what.metric) || what.metric == "contains" || what.metric == "score" ||
                    what.metric == kChanceAdjusted;
    results.lower = lower_is_better(what.metric);
    results.baselines = evaluations.baselines(what);
    for (const auto& group : evaluations.groups()) results.values.push_back(value_of(group, what, options));
    return results;
}

void rank(TaskResults& results) {
    std::vector<double> all;
    for (const auto& value : results.values) all.push_back(value ? value->value : kNone);
    const std::vector<Rank> ranks = ranks_of(all, results.lower);
    for (std::size_t i = 0; i < ranks.size(); ++i)
        if (results.values[i]) results.values[i]->rank = ranks[i];
}

std::string printed(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, std::abs(value) < kLong ? "%.*f" : "%.*g", std::abs(value) < kLong ? decimals : 4,
                  value);
    return text;
}

TaskGrid::Cell cell_of(const TaskResults& results, double value, double error, Rank rank) {
    TaskGrid::Cell cell;
    cell.value = value;
    cell.error = error;
    cell.rank = rank;
    const double unit = results.share ? 100 : 1;
    const int decimals = results.share || std::abs(value) >= 100 ? 1 : 2;
    cell.value_text = printed(unit * value, decimals);
    if (std::isfinite(error)) cell.error_text = printed(unit * error, decimals);
    return cell;
}

TaskGrid::Cell cell_of(const TaskResults& results, const std::optional<TaskValue>& value) {
    if (!value) return {};
    TaskGrid::Cell cell = cell_of(results, value->value, value->error, value->rank);
    cell.significant = value->significant();
    return cell;
}

TaskGrid::Cell cell_of(const TaskResults& results, const std::optional<double>& baseline) {
    if (!baseline) return {};
    return cell_of(results, *baseline, std::numeric_limits<double>::quiet_NaN(), Rank::none);
}

TaskGrid::Heading heading_of(const TaskResults& results) {
    return {results.title, results.lower ? "↓" : "↑"};
}

std::string latex_text(const TaskGrid::Heading& heading) {
    const std::string name = figures::latex_text(heading.name);
    if (heading.arrow.empty()) return name;
    return name + (heading.arrow == "↓" ? R"( $\downarrow$)" : R"( $\uparrow$)");
}

std::string latex_text(const TaskGrid::Cell& cell) {
    if (std::isnan(cell.value)) return "--";
    const char* mark = cell.rank == Rank::best ? "\\textbf{" : cell.rank == Rank::second ? "\\underline{" : "";
    const std::string value = mark + cell.value_text + (*mark != '\0' ? "}" : "") + (cell.significant ? "$^{*}$" : "");
    return cell.error_text.empty() ? value : value + R"( $\pm$ )" + cell.error_text;
}

}  // namespace

std::vector<Rank> ranks_of(const std::vector<double>& values, bool lower) {
    const auto key = [lower](double value) { return lower ? value : -value; };
    std::vector<double> all;
    for (const double value : values)
        if (!std::isnan(value)) all.push_back(key(value));
    std::vector<Rank> ranks(values.size(), Rank::none);
    if (all.size() < 2) return ranks;  // the best of one says nothing
    std::sort(all.begin(), all.end());
    const double best = all.front();
    const auto next = std::upper_bound(all.begin(), all.end(), best);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) continue;
        if (key(values[i]) == best)
            ranks[i] = Rank::best;
        else if (next != all.end() && key(values[i]) == *next)
            ranks[i] = Rank::second;
    }
    return ranks;
}

bool TaskValue::significant() const {
    return p < kSignificant;
}

TaskTable::TaskTable(const EvaluationGroups& evaluations, const FigureOptions& options)
    : models_(group_names(evaluations.groups())) {
    static_cast<void>(evaluations.chosen(options));  // of what there is not
    std::optional<Measured> first;
    const Choice choice(evaluations, options);
    for (const Measured& what : evaluations.measured()) {
        if (!choice.shows(what)) continue;
        if (!first) first = what;
        TaskResults results = results_of(evaluations, what, options);
        if (!results.some()) continue;
        rank(results);
        tasks_.push_back(std::move(results));
    }
    std::stable_sort(tasks_.begin(), tasks_.end(),
                     [](const TaskResults& a, const TaskResults& b) { return a.what.subset < b.what.subset; });
    if (tasks_.empty()) evaluations.chosen_length(*first, options);  // says at which there are any
    if (!options.significance.empty()) test(evaluations, options.significance);
    add_average(evaluations, options);
}

std::vector<std::string> TaskTable::subsets() const {
    std::vector<std::string> names;
    for (const TaskResults& task : tasks_)
        if (names.empty() || names.back() != task.what.subset) names.push_back(task.what.subset);
    return names;
}

TaskTable TaskTable::of_subset(const std::string& subset) const {
    TaskTable part = *this;
    std::erase_if(part.tasks_, [&](const TaskResults& task) { return task.what.subset != subset; });
    part.average_.reset();
    return part;
}

/// Compares a model with the best of the others, task by task.
void TaskTable::test(const EvaluationGroups& evaluations, const std::string& model) {
    const auto& groups = evaluations.groups();
    const std::size_t tested = named_group(groups, "--significance", model);
    for (TaskResults& task : tasks_) {
        if (!task.values[tested]) continue;
        std::optional<std::size_t> best;
        for (std::size_t m = 0; m < groups.size(); ++m) {
            if (m == tested || !task.values[m]) continue;
            const double value = task.values[m]->value;
            if (!best || (task.lower ? value < task.values[*best]->value : value > task.values[*best]->value)) best = m;
        }
        if (best)
            task.values[tested]->p = difference_p(groups[tested], task.values[tested]->length, groups[*best],
                                                  task.values[*best]->length, task.what);
    }
}

void TaskTable::add_average(const EvaluationGroups& evaluations, const FigureOptions& options) {
    const TaskAverage* paper = find_task_average(options.average);
    if (options.average.empty() && options.task.empty()) {
        std::vector<std::string> tasks;
        for (const TaskResults& task : tasks_) tasks.push_back(task.what.task);
        paper = average_of(tasks);
    }
    if (paper == nullptr) {
        std::vector<TaskResults> accuracies;
        for (const TaskResults& task : tasks_)
            if (is_accuracy(task.what.metric)) accuracies.push_back(task);
        if (accuracies.size() < 2) return;
        average_over(accuracies);
        average_->title = "average of " + std::to_string(accuracies.size()) + " accuracies";
        average_name_ = kAverageOfAll;
        return;
    }
    // With as many examples in the prompt as all of them were asked with: the fewest.
    std::set<std::int64_t> all_shots;
    for (const Measured& what : evaluations.measured()) all_shots.insert(what.shots);
    for (const std::int64_t shots : all_shots) {
        std::vector<TaskResults> entries;
        for (const AverageEntry& entry : paper->entries) {
            const auto& all = evaluations.measured();
            const auto what = std::find_if(all.begin(), all.end(), [&](const Measured& one) {
                return one.task == entry.task && one.metric == entry.metric && one.shots == shots;
            });
            if (what == all.end()) break;
            entries.push_back(results_of(evaluations, *what, options));
        }
        if (entries.size() < paper->entries.size()) continue;
        average_over(entries);
        average_->title = "average of " + std::to_string(entries.size()) + ", " + std::string(paper->title);
        if (shots > 0) average_->title += ", " + shots_text(shots);
        average_->what.shots = shots;
        average_name_ = paper->name;
        return;
    }
    if (options.average.empty()) return;
    // Asked for, and a task of it was asked of no model: an empty average.
    average_.emplace();
    average_->values.resize(models_.size());
    average_->share = average_->average = true;
    average_->title = "average of " + std::to_string(paper->entries.size()) + ", " + std::string(paper->title);
    average_name_ = paper->name;
}

/// A model or guesser that lacks one of them has no average.
void TaskTable::average_over(const std::vector<TaskResults>& tasks) {
    TaskResults mean;
    mean.values.assign(models_.size(), TaskValue());
    mean.baselines = {0.0, 0.0};
    const auto add = [&](std::optional<double>& to, const std::optional<double>& value) {
        to = to && value ? std::optional(*to + *value / static_cast<double>(tasks.size())) : std::nullopt;
    };
    for (const TaskResults& task : tasks) {
        for (std::size_t m = 0; m < models_.size(); ++m) {
            auto& value = mean.values[m];
            if (value && task.values[m])
                value->value += task.values[m]->value / static_cast<double>(tasks.size());
            else
                value.reset();
        }
        add(mean.baselines.chance, task.baselines.chance);
        add(mean.baselines.majority, task.baselines.majority);
    }
    mean.share = mean.average = true;
    rank(mean);
    average_ = std::move(mean);
}

TaskGrid::TaskGrid(const TaskTable& table, bool models_in_lines)
    : corner_(models_in_lines ? "model, shares in %" : "task, shares in %") {
    std::vector<const TaskResults*> tasks;
    bool chance = false, majority = false;
    for (const TaskResults& one : table.tasks()) {
        tasks.push_back(&one);
        chance = chance || one.baselines.chance;
        majority = majority || one.baselines.majority;
    }
    if (table.average()) tasks.push_back(&*table.average());
    const auto baseline_cell = [](const TaskResults& task, bool chance_of) {
        return cell_of(task, chance_of ? task.baselines.chance : task.baselines.majority);
    };
    const std::size_t models = table.models().size();
    if (models_in_lines) {
        for (const auto* task : tasks) columns_.push_back(heading_of(*task));
        for (std::size_t m = 0; m < models; ++m) {
            Line line{{table.models()[m], ""}, Kind::result, {}};
            for (const auto* task : tasks) line.cells.push_back(cell_of(*task, task->values[m]));
            lines_.push_back(std::move(line));
        }
        for (const bool of_chance : {true, false}) {
            if (!(of_chance ? chance : majority)) continue;
            Line line{{of_chance ? "chance" : "majority", ""}, Kind::baseline, {}};
            for (const auto* task : tasks) line.cells.push_back(baseline_cell(*task, of_chance));
            lines_.push_back(std::move(line));
        }
        return;
    }
    for (const auto& name : table.models()) columns_.push_back({name, ""});
    if (chance) columns_.push_back({"chance", ""});
    if (majority) columns_.push_back({"majority", ""});
    for (const auto* task : tasks) {
        Line line{heading_of(*task), task->average ? Kind::average : Kind::result, {}};
        for (const auto& value : task->values) line.cells.push_back(cell_of(*task, value));
        if (chance) line.cells.push_back(baseline_cell(*task, true));
        if (majority) line.cells.push_back(baseline_cell(*task, false));
        lines_.push_back(std::move(line));
    }
}

std::vector<std::size_t> TaskGrid::order(int column, bool descending) const {
    std::vector<std::size_t> order(lines_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (column < 0 || column > std::ssize(columns_)) return order;
    const auto results = std::stable_partition(order.begin(), order.end(),
                                               [&](std::size_t i) { return lines_[i].kind == Kind::result; });
    const auto value = [&](std::size_t line) { return lines_[line].cells[static_cast<std::size_t>(column) - 1].value; };
    std::stable_sort(order.begin(), results, [&](std::size_t a, std::size_t b) {
        if (column == 0) {
            const int compared = lines_[a].heading.name.compare(lines_[b].heading.name);
            return descending ? compared > 0 : compared < 0;
        }
        const double one = value(a), two = value(b);
        if (std::isnan(one) || std::isnan(two)) return !std::isnan(one) && std::isnan(two);
        return descending ? one > two : one < two;
    });
    return order;
}

std::string TaskGrid::latex(const std::vector<std::size_t>& order) const {
    const auto end = [](std::string line) { return line + " \\\\\n"; };
    std::string header = latex_text(corner_);
    for (const Heading& column : columns_) header += " & " + latex_text(column);
    std::string text =
        "\\begin{tabular}{l" + std::string(columns_.size(), 'r') + "}\n\\toprule\n" + end(header) + "\\midrule\n";
    Kind kind = Kind::result;
    for (const std::size_t at : order) {
        const Line& line = lines_.at(at);
        if (line.kind != kind) text += "\\midrule\n";
        kind = line.kind;
        std::string row = latex_text(line.heading);
        for (const Cell& cell : line.cells) row += " & " + latex_text(cell);
        text += end(row);
    }
    return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string TaskGrid::csv(const std::vector<std::size_t>& order) const {
    Table table;
    std::vector<std::string> names;
    for (const std::size_t at : order) names.push_back(lines_.at(at).heading.name);
    table.columns.push_back({corner_.substr(0, corner_.find(',')), std::move(names)});
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::vector<double> values, errors;
        for (const std::size_t at : order) {
            values.push_back(lines_[at].cells[c].value);
            errors.push_back(lines_[at].cells[c].error);
        }
        table.columns.push_back({columns_[c].name, std::move(values)});
        if (std::any_of(errors.begin(), errors.end(), [](double error) { return !std::isnan(error); }))
            table.columns.push_back({columns_[c].name + " error", std::move(errors)});
    }
    return figures::csv(table);
}

}  // namespace headscope::figures
