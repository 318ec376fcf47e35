// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tables of tasks of made-up evaluations.

#include <stdexcept>
#include <string>

#include "core/figures/evaluation_groups.h"
#include "core/figures/figure_options.h"
#include "core/figures/task_table.h"
#include "tests/core/figures/evaluation/evaluation_inputs.h"

namespace headscope::test {

inline figures::TaskTable table_of(const store::Evaluation& evaluation, const figures::FigureOptions& options = {}) {
    const auto inputs = inputs_of(evaluation);
    return {figures::EvaluationGroups(inputs.evaluations, "tasks"), options};
}

inline const figures::TaskResults& task(const figures::TaskTable& table, const std::string& title) {
    for (const auto& one : table.tasks())
        if (one.title == title) return one;
    throw std::runtime_error("no task " + title);
}

}  // namespace headscope::test
