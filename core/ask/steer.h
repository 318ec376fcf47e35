// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Steering: the difference of two sets of texts in the residual stream, layer by layer, and the metric of other texts
// with a multiple of it added to one layer's output. Threads: the compute thread. Errors: headscope::Error; Stopped,
// with finished cells in place.

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/ask/metric.h"
#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Model;
}

namespace headscope::ask {

enum class SteerAt : std::uint8_t { last, mean };  ///< the texts' last token, or the mean of their positions

struct SteerOptions {
    std::vector<store::SequenceTokens> positive, negative;  ///< empty: `vectors`
    SteerAt at = SteerAt::last;
    std::map<std::int64_t, at::Tensor> vectors;  ///< by layer, [d]; in place of texts
    std::vector<double> factors;
    std::vector<std::int64_t> layers;  ///< to be steered; empty: all that have a vector
    Metric metric;
    model::Editor* editor = nullptr;  ///< of every run; null: none
    std::function<void()> saved;      ///< called now and then, with finished cells in place
};

/// Fills /steer of `record`.
void run_steer(model::Model& model, const SteerOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation);

/// /steer/vector by layer, [d] float32; layers without one are left out.
std::map<std::int64_t, at::Tensor> steering_vectors(const store::AskRecord& record);

}  // namespace headscope::ask
