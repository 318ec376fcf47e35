// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The papers' cost of a token mixer: Tables 5-8 of "Deconstructing Attention" (appendices E to H). They count the
// attention sublayer of one layer without its output projection, matrix products only, in bytes of half precision.
// Letters: B sequences, L tokens, d hidden size, h heads (d = h d_h), t tensor-parallel size. Rows of other papers'
// mixers are ours: operations as the program runs them, all pairs of tokens as the paper counts, letters of their own
// (kOwnLetters); states count in half precision although they are float32 here.
// Includes no tensor: the window and figures use it. Threads: any. Errors: Error usage for a mixer without an entry.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost/formula.h"
#include "core/mixers/types/options.h"

namespace headscope::cost {

/// Sizes to compute costs for. Defaults: the paper's 500M model at its training length.
struct CostSetting {
    std::int64_t batch = 1;
    std::int64_t length = 2048;
    std::int64_t hidden = 896;
    std::int64_t heads = 14;
    std::int64_t tensor_parallel = 1;
    std::int64_t bytes = 2;          ///< of a number; the papers' byte formulas are for 2 and scale with it
    std::int64_t head_size = 0;      ///< of the model's attention; 0: hidden / heads
    mixers::MixerOptions options{};  ///< of mixers that have some
    double softmax_share = 0.5;      ///< of NAtS-L's chunks
    std::int64_t layers = 1;         ///< that share scores of StaticEmbQK
    std::int64_t prefetch = 0;       ///< decoding steps whose maps are computed before; 0: none

    /// Throws Error usage for a mixer that is not known.
    Letters letters(std::string_view mixer) const;
    bool operator==(const CostSetting&) const = default;
};

/// Meaning of those mixers' letters.
inline constexpr const char* kOwnLetters =
    "n heads with a state, of k numbers a key and v a value; g heads of keys; u 1 with a gate, w 1 with a map of how "
    "much is written, else 0; c taps of the convolution, p tokens that it looks back; C tokens a chunk or mini-batch; "
    "of NAtS-L m softmax heads, s the share of softmax chunks, x numbers that branch weights are made of, y norms of "
    "the output; of Lazy Attention b distances with a bias, o 1 with a learned offset, else 0; of StreamingLLM q keys "
    "in the cache, r how often each is there as positions; of FNet l the logarithm of L d";

struct MixerCost {
    std::string mixer;   ///< as files call it
    std::string title;   ///< as the paper calls it
    Formula time;        ///< complexity, up to a constant
    Formula prefill;     ///< floating-point operations of reading L tokens
    Formula decode;      ///< of one more token for each of B sequences, L of them in the cache; no text: encoders alone
    Formula activation;  ///< bytes that training keeps for the backward pass, at 2 bytes a number; no text: not known
    Formula cache;       ///< bytes that inference holds, at 2 bytes a number; no text: encoders alone
    Formula parameters;  ///< without biases of queries, keys and values, and without W^O
    std::optional<Formula> precomputed_prefill, precomputed_decode;  ///< with attention maps that are there already
    /// Time that l layers save whose scores were computed before (App. E of "Deconstructing Attention": StaticEmbQK).
    std::optional<Formula> scores_before;
    /// Bytes of the maps of D steps that are computed before (its App. H: RndEmbQK, FixedSeqQK).
    std::optional<Formula> prefetch;
};

/// In the paper's order; a mixer of a later paper adds its row.
const std::vector<MixerCost>& mixer_costs();
/// Throws Error usage that names those that have one.
const MixerCost& mixer_cost(std::string_view mixer);
bool has_cost(std::string_view mixer);
/// Those of "Deconstructing Attention", in its order.
const std::vector<std::string>& paper_mixers();
/// paper_mixers() and those of `models` that have a cost, in the order of mixer_costs(): as many as a figure can show.
std::vector<std::string> shown_mixers(const std::vector<std::string>& models);

/// One mixer's formulas at one setting, as numbers.
struct CostNumbers {
    double time = 0, prefill = 0, decode = 0, activation = 0, cache = 0, parameters = 0;
    std::optional<double> precomputed_prefill, precomputed_decode;
    std::optional<double> scores_before;
    std::optional<double> prefetch;  ///< bytes; none without setting.prefetch
};
CostNumbers evaluate(const MixerCost& cost, const CostSetting& setting);

/// A value of the option `normaliser` (Table 2 of "Lazy Attention"), n tokens.
struct NormalizerCost {
    const char* name;
    const char* time;   ///< up to a constant
    const char* flash;  ///< kernel that stores no n x n matrix: "native", or "two-pass"
};
/// Those that a mixer may have, in its option's order; none for mixers without the option.
std::vector<NormalizerCost> normalizer_costs(const mixers::MixerType& type);

}  // namespace headscope::cost
