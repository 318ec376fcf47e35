// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// From the scores of a task's items to the numbers that lm-eval prints. Threads: any.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/evaluation/harness/harness_items.h"
#include "core/evaluation/harness/harness_requests.h"

namespace headscope::evaluation {

/// Scores of one item.
struct ItemScore {
    std::vector<RequestScore> requests;  ///< as the item's; of a page one: the sum over its windows
    std::string generated;               ///< said
    std::int64_t chosen = -1;            ///< choices, partial: the option of the largest log-likelihood
    /// By name, in the task's order: "acc" 0 or 1; of lambada "perplexity" is the item's log-likelihood, of a page
    /// "word_perplexity" and the other page metrics are the page's own values.
    std::vector<std::pair<std::string, double>> metrics;
    bool right = false;  ///< by the metric of answers: acc, contains; false of a page
};

/// Fills in chosen, metrics and right from the requests, or from what was generated.
void judge(const HarnessTask& task, const HarnessItem& item, ItemScore& score);

/// A value over all items and its standard error (NaN: none).
struct HarnessValue {
    std::string metric;
    double value = 0, error = 0;
    std::int64_t count = 0;  ///< items
};
/// `resamples`: of lambada's perplexity (lm-eval: 100 000, in chunks of 1000); 0: no error.
std::vector<HarnessValue> values_of(const HarnessTask& task, std::span<const HarnessItem> items,
                                    std::span<const ItemScore> scores, std::int64_t resamples,
                                    const Cancellation* cancellation = nullptr);

/// Accuracy of who guesses (mean of 1 / options) and of who always says the most frequent gold index. Empty for tasks
/// without options.
std::vector<HarnessValue> baselines_of(const HarnessTask& task, std::span<const HarnessItem> items);

/// The same of tasks whose tokens are scored: a guesser gives each of `vocabulary` tokens one probability. Of lambada
/// "chance" (of the whole last word), "majority" (of the most frequent last word) and "chance_perplexity"; of pages
/// "chance_" before each metric. `scores` count the scored tokens. Empty for other tasks.
std::vector<HarnessValue> guesses_of(const HarnessTask& task, std::span<const HarnessItem> items,
                                     std::span<const ItemScore> scores, std::int64_t vocabulary);

/// "acc_chance" (Lazy Attention, C.3): (acc - c) / (1 - c), c the larger of chance and majority. None without acc or
/// without both guesses, and none where c is 1.
std::optional<HarnessValue> chance_adjusted(std::span<const HarnessValue> values,
                                            std::span<const HarnessValue> guesses);

}  // namespace headscope::evaluation
