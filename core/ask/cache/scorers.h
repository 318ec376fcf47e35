// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Scores of cached keys, by which a smaller key-value cache chooses: those of kvpress 0.5 (github.com/NVIDIA/kvpress),
// in float64. Threads: plain functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::ask::cache {

enum class Scorer : std::uint8_t {
    h2o,                 ///< mean weight over the queries that see the key (arXiv 2306.14048, as observed attention)
    snapkv,              ///< mean weight in a window of last queries, pooled (arXiv 2404.14469)
    tova,                ///< weight in the last row, mean of all heads (arXiv 2401.06104)
    streaming_llm,       ///< first keys and the last ones (arXiv 2309.17453)
    key_norm,            ///< small norms first (arXiv 2406.11430)
    key_difference,      ///< unlike the mean of the keys' directions (arXiv 2504.15364)
    expected_attention,  ///< expected weight for Gaussian queries, times the value's norm (arXiv 2510.00636)
};
inline constexpr std::int64_t kScorers = 7;
std::string_view name(Scorer scorer);

struct ScorerOptions {
    std::int64_t context = 0;  ///< keys that are scored
    std::int64_t window = 64;  ///< last queries of snapkv
    std::int64_t kernel = 5;   ///< keys in its average pool; odd
    std::int64_t sink = 4;     ///< first keys that streaming_llm and expected_attention keep
};

/// One site of one text; float64. Keys from the context on do not matter.
struct ScoredSite {
    at::Tensor column_sums;  ///< [H, C] sums of weights over the queries of the context
    at::Tensor window_rows;  ///< [H, window, C] weights of its last queries
    at::Tensor last_row;     ///< [H, C] weights of its last query
    at::Tensor key, value;   ///< [G, >= C, size]; keys after rotary positions
    at::Tensor query;        ///< [H, >= C, dk] before rotary positions, of expected_attention
    at::Tensor rotation;     ///< [dk, dk] mean rotation of later positions: a row vector times it is turned
};

/// [G, C], larger: kept first. Infinity: kept in any case. `ratio`: the share that is removed.
at::Tensor scores_of(Scorer scorer, const ScoredSite& site, const ScorerOptions& options, double ratio);

/// Keys that stay of `context`: at least 1.
std::int64_t kept_keys(std::int64_t context, double ratio);

/// Positions of the `count` largest scores [C], ascending; of equal ones the first.
std::vector<std::int64_t> best_keys(const at::Tensor& scores, std::int64_t count);

/// Throws usage for contexts and ratios that leave a scorer no choice.
void check_scorer(Scorer scorer, const ScorerOptions& options, const std::vector<double>& ratios);

}  // namespace headscope::ask::cache
