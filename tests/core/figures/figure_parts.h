// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of figures for tests of figures of runs and evaluations.

#include <stdexcept>
#include <string>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/figures/make_figure.h"
#include "tests/core/figures/sample_records.h"

namespace headscope::test {

inline figures::FigureData of_runs(const std::string& recipe, std::vector<store::RunRecord> runs,
                                   const figures::FigureOptions& options = {}) {
    figures::FigureInputs inputs;
    for (auto& run : runs) inputs.runs.push_back(shared(std::move(run)));
    return figures::make_figure(recipe, inputs, options);
}

template <class Values>
const Values& column(const figures::Table& table, const std::string& name) {
    for (const auto& one : table.columns)
        if (one.name == name) return std::get<Values>(one.values);
    throw std::runtime_error("no column " + name);
}

inline const std::vector<figures::Curve>& curves(const figures::Panel& panel) {
    return std::get<figures::Curves>(panel.content).curves;
}

}  // namespace headscope::test
