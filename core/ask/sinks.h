// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Attention sinks (Gu et al., arXiv 2410.10781) and massive activations (Sun et al., arXiv 2402.17762; together with
// value norms arXiv 2603.05498). Threads: the compute thread. Errors: headscope::Error; Stopped, with whole texts in
// place.

#include <functional>

#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask {

/// An activation is massive above both: in absolute value, and over the median.
inline constexpr double kMassiveValue = 100, kMassiveRatio = 1000;

struct SinksOptions {
    double epsilon = 0.3;  ///< mean weight above which a key is a sink
    model::Editor* editor = nullptr;
    std::function<void()> saved;  ///< called when a text is in place
};

/// Fills /sinks of `record`. Texts that have numbers already are left. Of an encoder-decoder all attentions are
/// measured: keys of the encoder and of cross-attention are the source's, and every query counts there.
void run_sinks(model::Model& model, const SinksOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation);

}  // namespace headscope::ask
