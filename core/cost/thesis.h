// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The thesis's tables: multi-head variants (3.1, 3.4, 3.13) and hash embeddings (chapter 2), as formulas.
// Threads: any. Errors: Error usage for a name that there is not.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost/formula.h"

namespace headscope::cost {

/// One attention sublayer without its output projection; n heads of size d, hidden size n d (Table 3.4).
struct HeadVariant {
    std::string name;   ///< as files call the mixer
    std::string label;  ///< "EL-att"
    Formula parameters;
    const char* complexity;  ///< of the parameters by heads: "n", "n^2"
    Formula added;           ///< parameters beyond SHA's
};
const std::vector<HeadVariant>& head_variants();
const HeadVariant& head_variant(std::string_view name);

/// Parameters of `sublayers` attentions, with or without W^O.
double variant_parameters(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size,
                          std::int64_t sublayers, bool with_output);

/// Bytes of one attention block in mixed precision (Table 3.13, with W^O): 6 a parameter for weights, 6 for gradients,
/// 8 for Adam's states, 2 B L d for activations.
struct BlockMemory {
    double weights = 0, gradients = 0, adam = 0, activations = 0;
    double total() const { return weights + gradients + adam + activations; }
};
BlockMemory block_memory(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size, std::int64_t batch,
                         std::int64_t length);
/// 1 - memory / memory of MHA.
double memory_saving(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size, std::int64_t batch,
                     std::int64_t length);

/// The share of a baseline's parameters that is saved (PCR).
double parameter_saving(double parameters, double baseline);
/// Score as a share of the baseline's; where lower is better, 1 - (score - baseline) / baseline.
double performance_retention(double score, double baseline, bool lower_is_better);
/// How much the score changes with the parameters, both relative to a baseline's (SHA).
double performance_elasticity(double score, double baseline, double parameters, double baseline_parameters,
                              bool lower_is_better);

/// Chapter 2, as Table 2.2 counts: special tokens' rows of `table` and `emb` alone. N rows, T bits of a hash, k bits of
/// a group, g = ceil(T / k) groups, c = 2^k codes, d hidden size.
struct HashEmbedding {
    std::string name;   ///< the kind of "embedding" in a native configuration
    std::string label;  ///< as the thesis calls it
    Formula parameters;
};
const std::vector<HashEmbedding>& hash_embeddings();
const HashEmbedding& hash_embedding(std::string_view name);
/// `rows`: of `table` all, of `emb` those of words.
double embedding_parameters(const HashEmbedding& embedding, std::int64_t rows, std::int64_t bits,
                            std::int64_t bits_of_group, std::int64_t hidden);

}  // namespace headscope::cost
