// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/figures/figure_data.h"
#include "widgets/views/stepper/step_source.h"

namespace headscope::widgets {

/// The measure of the row that led to a generated token: a site a row, a head a column. Null without sites.
std::shared_ptr<const figures::FigureData> step_figure(const ShownGeneration& generation, std::size_t step,
                                                       StepMeasure measure);

/// Weights of a head by token of the text, in the row that led to a generated token; empty where none were kept.
std::vector<float> step_weights(const ShownGeneration& generation, std::size_t step, std::int64_t site,
                                std::int64_t head);

}  // namespace headscope::widgets
