// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/work_plan.h"

#include <algorithm>

namespace headscope::analysis {

std::vector<WorkBatch> plan_work(const std::vector<store::SequenceTokens>& sequences, const model::ModelConfig& config,
                                 std::int64_t batch_tokens, bool with_head) {
    std::vector<WorkBatch> plan;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        const auto length = static_cast<std::int64_t>(sequences[s].ids.size());
        const auto most =
            static_cast<std::size_t>(std::max<std::int64_t>(1, batch_tokens / std::max<std::int64_t>(1, length)));
        // A full batch of this length is closed; the last one of it may still have room.
        const auto open =
            std::find_if(plan.rbegin(), plan.rend(), [&](const WorkBatch& b) { return b.length == length; });
        if (open == plan.rend() || open->sequences.size() >= most) {
            plan.push_back({{static_cast<std::int64_t>(s)}, length, 0, 0});
        } else {
            open->sequences.push_back(static_cast<std::int64_t>(s));
        }
    }
    const auto d = static_cast<double>(config.hidden), f = static_cast<double>(config.feed_forward);
    const double projections = 4 * d * d + (config.gated_feed_forward ? 3 : 2) * d * f;
    for (WorkBatch& batch : plan) {
        const double tokens = static_cast<double>(batch.length) * static_cast<double>(batch.sequences.size());
        // Measured attention is three products over the pairs and two exponentials: about 4 d per pair, half if causal.
        const double pairs = static_cast<double>(batch.length) * (config.causal ? 0.5 : 1.0);
        batch.layer_cost = tokens * (projections + 4 * d * pairs) + 1;
        batch.loss_cost = with_head ? tokens * d * static_cast<double>(config.vocabulary) : 0;
    }
    return plan;
}

}  // namespace headscope::analysis
