// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/site.h"
#include "core/model/config.h"
#include "core/model/load/residence.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::analysis {

/// Sequences of one length (and targets of one length) that run together, and what they cost in units that grow evenly
/// with time.
struct WorkBatch {
    std::vector<std::int64_t> sequences;
    std::int64_t length = 0;
    std::int64_t target_length = 0;   ///< 0: no decoder beside an encoder
    std::vector<double> layer_costs;  ///< by layer number
    double loss_cost = 0;             ///< of the head and loss
};

/// Tokens of the chunks that have types (Site::type_chunk); 0: none. Throws Error (unsupported) where layers differ.
std::int64_t type_chunk(const std::vector<Site>& sites);

/// Batches of at most `batch_tokens` tokens (or one sequence), in the order in which their first sequences come.
/// `targets`: one for each sequence, or none.
std::vector<WorkBatch> plan_work(const std::vector<store::SequenceTokens>& sequences,
                                 const std::vector<store::SequenceTokens>& targets, const model::ModelConfig& config,
                                 std::int64_t batch_tokens, bool with_head);

/// Batches that pass the layers together, where a layer's weights come for all of them at once.
struct WorkGroup {
    std::size_t batches = 0;   ///< at least one
    double waiting_bytes = 0;  ///< of their hidden states, which wait in memory
    double spilled_bytes = 0;  ///< the same on the disk
};
/// Groups of a whole plan, in its order. Of several batches at most `waiting_bytes` wait in memory. With float32 each
/// batch is a group, with `file` as many as wait in memory, with `stream` all of them: the others wait on the disk.
std::vector<WorkGroup> group_work(std::span<const WorkBatch> plan, const model::ModelConfig& config,
                                  model::Residence residence, double waiting_bytes);

}  // namespace headscope::analysis
