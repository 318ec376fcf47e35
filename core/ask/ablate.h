// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Ablation: the metric with the output of one head, attention or feed-forward replaced, for each in turn.
// Threads: the compute thread. Errors: headscope::Error; Stopped, with finished cells in place.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/ask/metric.h"
#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask {

enum class AblateBy : std::uint8_t {
    zero,
    mean,       ///< over the positions of the same text
    reference,  ///< over all positions of the reference texts
    resample,   ///< text s takes text s mod R of the reference, at the same positions
};

struct AblateOptions {
    AblateBy how = AblateBy::zero;
    Metric metric;
    std::vector<store::SequenceTokens> reference;  ///< of reference and resample
    bool importance = false;  ///< gradient importance of heads, too (Michel, Levy, Neubig, arXiv 1905.10650, eq. 2)
    model::Editor* editor = nullptr;
    std::function<void()> saved;
};

/// Heads by the size of the metric's mean change over texts, the largest first: "layer,site,head,change,importance" in
/// CSV; importance is empty where it was not computed.
std::string ranked_heads_csv(const store::AskRecord& record);

/// Fills /ablate of `record`.
void run_ablate(model::Model& model, const AblateOptions& options, store::AskRecord& record, Progress& progress,
                const Cancellation& cancellation);

}  // namespace headscope::ask
