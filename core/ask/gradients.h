// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Gradients of a metric at places inside a run. Threads: the compute thread.

#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ask/cells.h"
#include "core/ask/metric.h"

namespace headscope::ask {

struct RunGradients {
    RunValues values, gradients;  ///< by place, each [1, ..]
    double metric = 0;
};

/// Throws unsupported for weights that are not in memory in float32.
void check_gradients(const model::Model& model);

/// A forward and a backward pass of `text`. Places of `moved` take its values instead of their own; their gradients
/// are those at these values. Throws as check_gradients().
RunGradients gradients_of(model::Model& model, const TextInput& text, const std::vector<model::PointKey>& places,
                          const Measure& measure, model::Editor* around, const Cancellation& cancellation,
                          const RunValues& moved = {});

}  // namespace headscope::ask
