// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/batch.h"
#include "core/model/config.h"

namespace headscope::model {

class Cache;
struct ForwardOptions;

/// Refuses a batch that the model cannot read, before anything is computed: shapes and types (usage), ids and token
/// types out of range (limit, with sequence, position and id), and positions past the model's (limit; names
/// --beyond-positions where that would work). `held`: tokens that a cache holds already, an encoder-decoder's of its
/// target.
void check_batch(const Batch& batch, const ModelConfig& config, std::int64_t held, bool beyond_positions);

/// Refuses a text of `tokens` tokens if the model (an encoder-decoder's encoder) has too few positions, as check_batch
/// does, from the length alone.
void check_length(std::int64_t tokens, const ModelConfig& config, bool beyond_positions);

/// Refuses (usage) a cache that the batch cannot continue: of an encoder, spoiled, with padding, of another batch size.
void check_cache(const Cache& cache, const ModelConfig& config, const Batch& batch);

/// Refuses (usage) an only_position past the batch's length, or with what it excludes.
void check_only_position(const ForwardOptions& options, const Batch& batch);

}  // namespace headscope::model
