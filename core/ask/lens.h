// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The logit lens (nostalgebraist 2020): the head's distribution of the residual stream between blocks; with a fitted
// map of each boundary the tuned or the Jacobian lens. Threads: the compute thread. Errors: headscope::Error; Stopped,
// with whole sequences in place.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/ask/lens_file.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask {

struct LensOptions {
    std::vector<std::int64_t> target;  ///< tokens whose probability counts; empty: the text's next token
    std::int64_t top = 5;
    LensFile* maps = nullptr;         ///< null: the logit lens
    model::Editor* editor = nullptr;  ///< of each run; null: none
    std::function<void()> saved;      ///< called when a sequence is in place
};

/// Fills /lens of `record`, which has model and sequences. Boundaries and positions of an encoder-decoder are its
/// decoder's. Sequences that have numbers already are left.
void run_lens(model::Model& model, const LensOptions& options, store::AskRecord& record, Progress& progress,
              const Cancellation& cancellation);

}  // namespace headscope::ask
