// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Parameters of a stack from its sizes alone, before anything is built: what presets, the layout editor and the cost
// table print. Pre-norm decoders with gated feed-forward and RMS norms (Qwen2, Qwen3, Llama and the native family).

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::cost {

struct StackSizes {
    std::int64_t vocabulary = 0, hidden = 0, feed_forward = 0, layers = 0, heads = 0;
    std::int64_t key_value_heads = 0;  ///< 0: heads
    std::int64_t head_size = 0;        ///< 0: hidden / heads
    bool tied = false;                 ///< the head shares the embedding
    bool query_key_value_bias = false;
    bool query_key_norm = false;      ///< a gain of head_size for queries and one for keys in each layer
    std::vector<std::string> mixers;  ///< per layer; empty: standard everywhere
};

struct ParameterCount {
    std::int64_t embedding = 0;  ///< one table
    std::int64_t head = 0;       ///< 0 when tied
    std::int64_t mixers = 0;     ///< three maps each, with their biases and norms
    std::int64_t outputs = 0;    ///< W^O
    std::int64_t feed_forward = 0;
    std::int64_t norms = 0;
    std::int64_t total() const { return embedding + head + mixers + outputs + feed_forward + norms; }
    std::int64_t without_embeddings() const { return total() - embedding - head; }
};

/// Guides (noise, ids) are not trained and not counted. All seven mixers have the same number, where every query head
/// has keys of its own and queries are as wide as the hidden states; the `mlp` mixer has no heads, and its three maps
/// stay [h d_h, d], [h d_h, d] and [h d_h, h d_h]: with grouped heads it has more. It has neither biases nor norms of
/// queries and keys, so it lacks those where a stack has them.
ParameterCount count_parameters(const StackSizes& sizes);

}  // namespace headscope::cost
