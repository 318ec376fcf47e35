// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/progress.h"
#include "core/figures/figure_inputs.h"
#include "core/figures/options/option_list.h"

namespace headscope::app {

/// Opens what a figure is to be made of, by what each path is: analyses, run folders or their run.h5, evaluation files;
/// for the figure `cost` also checkpoints and presets' names, whose sizes are all that is wanted; for `tensors`
/// checkpoints, whose tensors it counts. Throws Error, Stopped.
figures::FigureInputs open_figure_inputs(const std::vector<std::filesystem::path>& paths,
                                         const figures::FigureRequest& request, const Cancellation& cancellation);

}  // namespace headscope::app
