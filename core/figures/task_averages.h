// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which tasks each paper averages, and by which metric: one table for the figure, its CSV and LaTeX, and the window.

#include <string>
#include <string_view>
#include <vector>

namespace headscope::figures {

struct AverageEntry {
    std::string_view task, metric;
};

struct TaskAverage {
    std::string_view name, title;           ///< "natsl", "NAtS-L"
    std::vector<AverageEntry> entries;      ///< each counts once
    std::vector<std::string_view> printed;  ///< tasks that the paper prints beside them
};

/// "all" in place of a name: the accuracies that are shown, whatever they are.
inline constexpr const char* kAverageOfAll = "all";

/// In the order of the papers.
const std::vector<TaskAverage>& task_averages();
/// nullptr: none has that name.
const TaskAverage* find_task_average(std::string_view name);
/// The average whose tasks these are: all of its entries, and nothing that its paper does not print. nullptr: none.
const TaskAverage* average_of(const std::vector<std::string>& tasks);

}  // namespace headscope::figures
