// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Results of lm-eval's tasks as the papers print them: tasks x models, values with their errors, the best and the
// second best marked, who guesses beside them. The figure `tasks` draws it, the window shows it. Threads: any.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/evaluation_groups.h"

namespace headscope::figures {

/// Among the models of one task, by the metric's direction; equal ones share it.
enum class Rank { none, second, best };

/// The rank of each value; NaN has none, nor has one alone.
std::vector<Rank> ranks_of(const std::vector<double>& values, bool lower);

struct TaskValue {
    double value = 0;
    double error = std::numeric_limits<double>::quiet_NaN();  ///< NaN: not known
    std::int64_t length = 0;                                  ///< context in tokens; 0: of several
    std::int64_t seeds = 1;
    Rank rank = Rank::none;
    double p = std::numeric_limits<double>::quiet_NaN();  ///< of options.significance; NaN: not tested
    bool significant() const;
};

/// A task by one of its metrics, or the mean of several.
struct TaskResults {
    Measured what;
    std::string title;
    bool share = false;  ///< of the items: from 0 to 1, printed as per cent
    bool lower = false;  ///< is better
    bool average = false;
    std::vector<std::optional<TaskValue>> values;  ///< one a model
    Baselines baselines;

    bool some() const {
        return std::any_of(values.begin(), values.end(), [](const auto& value) { return value.has_value(); });
    }
};

class TaskTable {
public:
    /// options.metric: acc or acc_norm where a task has it; another one: tasks that have it alone; empty: what the
    /// papers print of each task. options.length: at that length; else at the longest that a model was asked at.
    /// options.average: see task_averages.h. Throws Error usage that lists what there is.
    TaskTable(const EvaluationGroups& evaluations, const FigureOptions& options);

    const std::vector<std::string>& models() const noexcept { return models_; }
    const std::vector<TaskResults>& tasks() const noexcept { return tasks_; }
    /// Parts of the tasks' items, in the order of the tasks; one empty name where there are none.
    std::vector<std::string> subsets() const;
    /// The tasks of one part, without an average.
    TaskTable of_subset(const std::string& subset) const;
    /// Mean over the tasks of a paper's average, or over all accuracies, of the models that have them all. None where
    /// no model was asked all of them, nor of fewer than two.
    const std::optional<TaskResults>& average() const noexcept { return average_; }
    const std::string& average_name() const noexcept { return average_name_; }  ///< of task_averages.h

private:
    void test(const EvaluationGroups& evaluations, const std::string& model);
    void add_average(const EvaluationGroups& evaluations, const FigureOptions& options);
    void average_over(const std::vector<TaskResults>& tasks);

    std::vector<std::string> models_;
    std::vector<TaskResults> tasks_;
    std::optional<TaskResults> average_;
    std::string average_name_;
};

/// The table as it is shown: lines of cells under columns.
class TaskGrid {
public:
    struct Heading {
        std::string name, arrow;  ///< arrow: "↑" more is better, "↓" less is, or nothing
        std::string text() const { return arrow.empty() ? name : name + " " + arrow; }
    };
    struct Cell {
        double value = std::numeric_limits<double>::quiet_NaN();  ///< NaN: there is none; sorts last
        double error = std::numeric_limits<double>::quiet_NaN();
        std::string value_text = "–", error_text;  ///< as printed
        Rank rank = Rank::none;
        bool significant = false;  ///< marked *
        std::string text() const {
            return value_text + (significant ? "*" : "") + (error_text.empty() ? "" : " ± " + error_text);
        }
    };
    /// Averages and baselines stay behind the others, however these are sorted.
    enum class Kind { result, average, baseline };
    struct Line {
        Heading heading;
        Kind kind = Kind::result;
        std::vector<Cell> cells;  ///< one a column
    };

    TaskGrid() = default;
    /// A line a task, with chance and majority as columns and the average as the last line; or a line a model, with
    /// chance and majority as lines and the average as the last column.
    TaskGrid(const TaskTable& table, bool models_in_lines);

    const std::string& corner() const noexcept { return corner_; }
    const std::vector<Heading>& columns() const noexcept { return columns_; }
    const std::vector<Line>& lines() const noexcept { return lines_; }

    /// The lines in the order of a column's values (0: of their names; 1 ..: columns; below 0: as they are). Equal ones
    /// keep their order.
    std::vector<std::size_t> order(int column, bool descending) const;

    /// A tabular of the package booktabs, its lines in that order.
    std::string latex(const std::vector<std::size_t>& order) const;
    /// RFC 4180: a column of values and one of errors where there are any; shares from 0 to 1, numbers in full.
    std::string csv(const std::vector<std::size_t>& order) const;

private:
    std::string corner_;
    std::vector<Heading> columns_;
    std::vector<Line> lines_;
};

}  // namespace headscope::figures
