// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/work_plan.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/model/load/memory.h"

namespace headscope::analysis {
namespace {

double layer_cost(const model::ModelConfig& config, std::int64_t sequences, std::int64_t length, std::int64_t memory) {
    const auto d = static_cast<double>(config.hidden), f = static_cast<double>(config.feed_forward);
    const auto queries = static_cast<double>(length), keys = static_cast<double>(memory);
    const double projections = 4 * d * d + (config.gated_feed_forward ? 3 : 2) * d * f;
    // Measured attention is three products over the pairs and two exponentials: about 4 d per pair, half if causal.
    const double own = queries * (projections + 4 * d * queries * (config.causal ? 0.5 : 1.0));
    const double cross = memory > 0 ? 2 * d * d * (queries + keys) + 4 * d * queries * keys : 0;
    return static_cast<double>(sequences) * (own + cross) + 1;
}

}  // namespace

std::int64_t type_chunk(const std::vector<Site>& sites) {
    std::int64_t chunk = 0;
    for (const Site& site : sites) {
        if (site.type_chunk == 0 || site.type_chunk == chunk) continue;
        if (chunk != 0) {
            throw Error(ErrorCode::unsupported, "layer " + std::to_string(site.layer),
                        "expected chunks of " + std::to_string(chunk) + " tokens, as in layers before it",
                        "found " + std::to_string(site.type_chunk));
        }
        chunk = site.type_chunk;
    }
    return chunk;
}

std::vector<WorkBatch> plan_work(const std::vector<store::SequenceTokens>& sequences,
                                 const std::vector<store::SequenceTokens>& targets, const model::ModelConfig& config,
                                 std::int64_t batch_tokens, bool with_head) {
    std::vector<WorkBatch> plan;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        const auto length = static_cast<std::int64_t>(sequences[s].ids.size());
        const auto target = s < targets.size() ? static_cast<std::int64_t>(targets[s].ids.size()) : 0;
        const auto longer = std::max<std::int64_t>(1, std::max(length, target));
        const auto most = static_cast<std::size_t>(std::max<std::int64_t>(1, batch_tokens / longer));
        // A full batch of this length is closed; the last one of it may still have room.
        const auto open = std::find_if(plan.rbegin(), plan.rend(), [&](const WorkBatch& b) {
            return b.length == length && b.target_length == target;
        });
        if (open == plan.rend() || open->sequences.size() >= most) {
            plan.push_back({{static_cast<std::int64_t>(s)}, length, target, {}, 0});
        } else {
            open->sequences.push_back(static_cast<std::int64_t>(s));
        }
    }
    for (WorkBatch& batch : plan) {
        const auto count = static_cast<std::int64_t>(batch.sequences.size());
        const std::int64_t predicted = config.encoder ? batch.target_length : batch.length;
        if (config.encoder) {
            batch.layer_costs.assign(static_cast<std::size_t>(config.encoder->layers),
                                     layer_cost(*config.encoder, count, batch.length, 0));
        }
        batch.layer_costs.resize(static_cast<std::size_t>(config.all_layers()),
                                 layer_cost(config, count, predicted, config.encoder ? batch.length : 0));
        const double head = static_cast<double>(config.hidden) * static_cast<double>(config.vocabulary);
        batch.loss_cost = with_head ? static_cast<double>(count * predicted) * head : 0;
    }
    return plan;
}

std::vector<WorkGroup> group_work(std::span<const WorkBatch> plan, const model::ModelConfig& config,
                                  model::Residence residence, double waiting_bytes) {
    const bool together = residence != model::Residence::float32, spills = residence == model::Residence::stream;
    std::vector<WorkGroup> groups;
    for (const WorkBatch& work : plan) {
        const double tokens =
            static_cast<double>(work.sequences.size()) * static_cast<double>(work.length + work.target_length);
        const double bytes = together ? model::waiting_bytes(config, tokens) : 0;
        const bool joins =
            together && !groups.empty() && (spills || groups.back().waiting_bytes + bytes <= waiting_bytes);
        if (!joins) groups.emplace_back();
        ++groups.back().batches;
        groups.back().waiting_bytes += bytes;
    }
    for (WorkGroup& group : groups) {
        if (group.batches == 1) continue;
        group.spilled_bytes = std::max(0.0, group.waiting_bytes - waiting_bytes);
        group.waiting_bytes -= group.spilled_bytes;
    }
    return groups;
}

}  // namespace headscope::analysis
