// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Figures of synthetic analysis files by name of the recipe, and choices of a layer, a head and a sequence.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/figures/make_figure.h"
#include "tests/core/figures/figure_files.h"

namespace headscope::tests {

inline figures::FigureData make(const std::string& recipe,
                                const std::vector<std::shared_ptr<store::AnalysisFile>>& files,
                                const figures::FigureOptions& options = {}) {
    return figures::make_figure(recipe, files, options);
}

inline figures::FigureOptions chosen(std::optional<std::int64_t> layer, std::optional<std::int64_t> head,
                                     std::optional<std::int64_t> sequence) {
    figures::FigureOptions options;
    options.layer = layer;
    options.head = head;
    options.sequence = sequence;
    return options;
}

}  // namespace headscope::tests
