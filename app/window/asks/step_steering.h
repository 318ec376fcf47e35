// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parts of steering a step of a generation. Threads: the compute thread. Errors: headscope::Error.

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"

namespace headscope::model {
class Model;
}
namespace headscope::store {
struct AskRecord;
}

namespace headscope::app {

/// Adds factor times the vectors of a file of `ask steer` to the output of a layer; -1: of each that has one. Throws
/// usage for vectors that do not fit the model and for a layer without one.
model::Intervention steering_edit(const store::AskRecord& file, int layer, double factor,
                                  const model::ModelConfig& config);

/// The distribution of the token after a text, at temperature 1.
struct NextToken {
    std::vector<std::int64_t> ids;      ///< the vocabulary, likeliest first
    std::vector<double> probabilities;  ///< by id
};
/// `editor` may be null.
NextToken read_next_token(model::Model& model, model::Editor* editor, const std::vector<std::int64_t>& text,
                          const Cancellation& cancellation);

}  // namespace headscope::app
