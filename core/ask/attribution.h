// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Direct logit attribution: terms of a logit, or of a difference of logits, by embedding, head and feed-forward, with
// every norm on the way frozen at its value in this run. Threads: the compute thread. Errors: headscope::Error;
// Stopped.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask {

struct AttributionOptions {
    std::vector<std::int64_t> answer, against;  ///< tokens; against may be empty: the logit itself
    std::int64_t position = -1;                 ///< negative: from the text's end
    model::Editor* editor = nullptr;
    std::function<void()> saved;  ///< called when a sequence is in place
};

/// Fills /attribution of `record`, of an encoder-decoder for its decoder. Refuses edits of the residual stream itself
/// and of attention outputs. Supported: pre-norm stacks whose residual stream is not scaled.
void run_attribution(model::Model& model, const AttributionOptions& options, store::AskRecord& record,
                     Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::ask
