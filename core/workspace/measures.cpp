// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/measures.h"

#include <algorithm>
#include <array>

namespace headscope::workspace {
namespace {

constexpr std::string_view kDeconstructing = "Deconstructing Attention, section 4.4";
constexpr std::string_view kLazy = "Lazy Attention";
constexpr std::string_view kScores = "Deconstructing Attention, Fig. 2 and 6";
constexpr std::string_view kOurs = "Headscope";

// One measure a line or two, as a table.
// clang-format off
constexpr std::array kMeasures{
    Measure{"entropy", "Entropy", "nats", "Minus the sum of A log A over all pairs.", kDeconstructing},
    Measure{"entropy_row_mean", "Entropy per query", "nats", "Entropy divided by the number of queries: comparable between lengths.", kDeconstructing},
    Measure{"concentration", "Concentration", "", "Frobenius norm of the attention matrix.", kDeconstructing},
    Measure{"head_diversity", "Head diversity", "", "Standard deviation of a weight between the layer's heads, averaged over all pairs.", kDeconstructing, true},
    Measure{"sink", "Sink", "", "Mean weight on the first key.", kDeconstructing},
    Measure{"local_focus_0", "Local focus, itself", "", "Mean weight of a query on its own position.", kDeconstructing},
    Measure{"local_focus_1", "Local focus, 1 back", "", "Mean weight of a query on the key before it.", kDeconstructing},
    Measure{"local_focus_2", "Local focus, 2 back", "", "Mean weight of a query on the key two before it.", kDeconstructing},
    Measure{"local_focus_3", "Local focus, 3 back", "", "Mean weight of a query on the key three before it.", kDeconstructing},
    Measure{"density", "Density", "", "Mean mass of a query on keys other than the first.", kLazy},
    Measure{"sparsity", "Sparsity", "", "Mass that a query releases: 1 - density - sink; 0 for softmax.", kLazy},
    Measure{"zero_fraction", "Zero fraction", "", "Share of allowed pairs with a weight below 2^-126.", kOurs},
    Measure{"mean_distance", "Mean distance", "tokens", "Distance from query to key, weighted by attention.", kOurs},
    Measure{"duplicate", "Duplicate tokens", "", "Mean weight on earlier copies of the query's token.", kOurs},
    Measure{"induction", "Induction", "", "Mean weight on what followed earlier copies of the query's token.", kOurs},
    Measure{"virtual_sink", "Learned sink", "", "Mean weight on the learned sink.", "gpt-oss"},
    Measure{"softmax_fraction", "Softmax fraction", "", "Share of chunks that use softmax attention.", "NAtS-L, Fig. 5 and 8"},
    Measure{"offset", "Offset", "", "What Elastic-Softmax adds to each weight before it cuts off what is below 0.", kLazy},
    // Of runs' probes alone.
    Measure{"bias_0", "Bias at distance 0", "", "What is added to a token's score of itself.", kLazy},
    Measure{"bias_1", "Bias at distance 1", "", "What is added to the score of the key before the query.", kLazy},
    Measure{"bias_4", "Bias at distance 4", "", "What is added to the score of the key four before the query.", kLazy},
    Measure{"bias_16", "Bias at distance 16", "", "What is added to the score of the key 16 before the query.", kLazy},
    Measure{"bias_64", "Bias at distance 64", "", "What is added to the score of the key 64 before the query.", kLazy},
    Measure{"bias_256", "Bias at distance 256", "", "What is added to the score of the key 256 before the query.", kLazy},
    Measure{"bias_1024", "Bias at distance 1024", "", "What is added to the score of the key 1024 before the query.", kLazy},
    Measure{"a_to_a", "A to A", "", "Of a pair: mean weight that a query of the first text gives to the first text.", kOurs},
    Measure{"a_to_b", "A to B", "", "Of a pair: mean weight that a query of the first text gives to the second.", kOurs},
    Measure{"b_to_a", "B to A", "", "Of a pair: mean weight that a query of the second text gives to the first.", kOurs},
    Measure{"b_to_b", "B to B", "", "Of a pair: mean weight that a query of the second text gives to the second.", kOurs},
    Measure{"a_to_special", "A to inserted", "", "Of a pair: mean weight of the first text on tokens that the tokenizer inserted.", kOurs},
    Measure{"b_to_special", "B to inserted", "", "Of a pair: mean weight of the second text on tokens that the tokenizer inserted.", kOurs},
    Measure{"special_to_a", "Inserted to A", "", "Of a pair: mean weight of inserted tokens on the first text.", kOurs},
    Measure{"special_to_b", "Inserted to B", "", "Of a pair: mean weight of inserted tokens on the second text.", kOurs},
    Measure{"special_to_special", "Inserted to inserted", "", "Of a pair: mean weight of inserted tokens on inserted tokens.", kOurs},
    Measure{"score_minimum", "Smallest score", "", "Smallest score before the normalizer.", kScores},
    Measure{"score_maximum", "Largest score", "", "Largest score before the normalizer.", kScores},
    Measure{"score_mean", "Mean score", "", "Mean score before the normalizer over all allowed pairs.", kScores},
    Measure{"score_variance", "Score variance", "", "Variance of the scores before the normalizer over all allowed pairs.", kScores},
    Measure{"above_10", "Scores beyond 10", "", "Number of scores above 10 in absolute value.", kScores},
    Measure{"above_100", "Scores beyond 100", "", "Number of scores above 100 in absolute value.", kScores},
    Measure{"above_1000", "Scores beyond 1000", "", "Number of scores above 1000 in absolute value.", kScores},
};
// clang-format on

}  // namespace

std::span<const Measure> measures() {
    return kMeasures;
}

const Measure* find_measure(std::string_view name) {
    const auto* found =
        std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& m) { return m.name == name; });
    return found == kMeasures.end() ? nullptr : found;
}

}  // namespace headscope::workspace
