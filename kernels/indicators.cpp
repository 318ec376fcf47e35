// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/indicators.h"

namespace headscope::kernels {
namespace {

constexpr const char* kDeconstructing = "Deconstructing Attention, section 4.4";
constexpr const char* kLazy = "Lazy Attention";
constexpr const char* kScores = "Deconstructing Attention, Fig. 2 and 6";
constexpr const char* kOurs = "Headscope";

using Kind = IndicatorKind;

// Two lines a row, as a table.
// clang-format off
constexpr Indicator kIndicators[] = {
    {.name = "entropy", .kind = Kind::weights, .title = "Entropy", .unit = "nats", .values = &Statistics::entropy,
     .file_text = "entropy, summed over queries", .definition = "Minus the sum of A log A over all pairs.", .source = kDeconstructing},
    {.name = "entropy_row_mean", .kind = Kind::weights, .title = "Entropy per query", .unit = "nats", .values = &Statistics::entropy_row_mean,
     .file_text = "entropy per query", .definition = "Entropy divided by the number of queries: comparable between lengths.", .source = kDeconstructing},
    {.name = "concentration", .kind = Kind::weights, .title = "Concentration", .values = &Statistics::concentration,
     .file_text = "Frobenius norm of the matrix", .definition = "Frobenius norm of the attention matrix.", .source = kDeconstructing},
    {.name = "head_diversity", .kind = Kind::site, .title = "Head diversity (by layer)", .short_title = "Head diversity", .from_zero = true, .per_head = false,
     .file_text = "standard deviation across heads, mean over pairs", .definition = "Standard deviation of a weight between the layer's heads, averaged over all pairs.", .source = kDeconstructing},
    {.name = "sink", .kind = Kind::weights, .title = "Sink", .from_zero = true, .values = &Statistics::sink,
     .file_text = "mean weight on the first key", .definition = "Mean weight on the first key.", .source = kDeconstructing},
    {.name = "local_focus", .kind = Kind::distances, .title = "Local focus", .from_zero = true,
     .file_text = "mean weight on the key at each distance before the query"},
    {.name = "local_focus_0", .kind = Kind::distance, .title = "Local focus, itself",
     .definition = "Mean weight of a query on its own position.", .source = kDeconstructing},
    {.name = "local_focus_1", .kind = Kind::distance, .title = "Local focus, 1 back",
     .definition = "Mean weight of a query on the key before it.", .source = kDeconstructing},
    {.name = "local_focus_2", .kind = Kind::distance, .title = "Local focus, 2 back",
     .definition = "Mean weight of a query on the key two before it.", .source = kDeconstructing},
    {.name = "local_focus_3", .kind = Kind::distance, .title = "Local focus, 3 back",
     .definition = "Mean weight of a query on the key three before it.", .source = kDeconstructing},
    {.name = "density", .kind = Kind::weights, .title = "Density", .values = &Statistics::density,
     .file_text = "mean weight on keys other than the first", .definition = "Mean mass of a query on keys other than the first.", .source = kLazy},
    {.name = "sparsity", .kind = Kind::weights, .title = "Sparsity", .from_zero = true, .values = &Statistics::sparsity,
     .file_text = "1 - density - sink", .definition = "Mass that a query releases: 1 - density - sink; 0 for softmax.", .source = kLazy},
    {.name = "zero_fraction", .kind = Kind::weights, .title = "Zero fraction", .from_zero = true, .values = &Statistics::zero_fraction,
     .file_text = "share of allowed pairs with a weight below 2^-126", .definition = "Share of allowed pairs with a weight below 2^-126.", .source = kOurs},
    {.name = "mean_distance", .kind = Kind::weights, .title = "Mean distance", .unit = "tokens", .from_zero = true, .values = &Statistics::mean_distance,
     .file_text = "mean distance from query to key, by weight", .definition = "Distance from query to key, weighted by attention.", .source = kOurs},
    {.name = "duplicate", .kind = Kind::weights, .title = "Duplicate tokens", .from_zero = true, .values = &Statistics::duplicate,
     .file_text = "mean weight on earlier copies of the query's token", .definition = "Mean weight on earlier copies of the query's token.", .source = kOurs},
    {.name = "induction", .kind = Kind::weights, .title = "Induction", .from_zero = true, .values = &Statistics::induction,
     .file_text = "mean weight on tokens that follow a copy of the query's token", .definition = "Mean weight on what followed earlier copies of the query's token.", .source = kOurs},
    {.name = "virtual_sink", .kind = Kind::weights, .title = "Learned sink", .from_zero = true, .values = &Statistics::virtual_sink,
     .file_text = "mean share of the learned sink logit", .definition = "Mean weight on the learned sink.", .source = "gpt-oss"},
    {.name = "softmax_fraction", .kind = Kind::site, .title = "Softmax fraction", .from_zero = true,
     .file_text = "share of chunks typed softmax", .definition = "Share of chunks that use softmax attention.", .source = "NAtS-L, Fig. 5 and 8"},
    {.name = "offset", .kind = Kind::parameter, .title = "Offset",
     .definition = "What Elastic-Softmax adds to each weight before it cuts off what is below 0.", .source = kLazy},
    {.name = "bias_0", .kind = Kind::parameter, .title = "Bias at distance 0",
     .definition = "What is added to a token's score of itself.", .source = kLazy},
    {.name = "bias_1", .kind = Kind::parameter, .title = "Bias at distance 1",
     .definition = "What is added to the score of the key before the query.", .source = kLazy},
    {.name = "bias_4", .kind = Kind::parameter, .title = "Bias at distance 4",
     .definition = "What is added to the score of the key four before the query.", .source = kLazy},
    {.name = "bias_16", .kind = Kind::parameter, .title = "Bias at distance 16",
     .definition = "What is added to the score of the key 16 before the query.", .source = kLazy},
    {.name = "bias_64", .kind = Kind::parameter, .title = "Bias at distance 64",
     .definition = "What is added to the score of the key 64 before the query.", .source = kLazy},
    {.name = "bias_256", .kind = Kind::parameter, .title = "Bias at distance 256",
     .definition = "What is added to the score of the key 256 before the query.", .source = kLazy},
    {.name = "bias_1024", .kind = Kind::parameter, .title = "Bias at distance 1024",
     .definition = "What is added to the score of the key 1024 before the query.", .source = kLazy},
    {.name = "a_to_a", .kind = Kind::region, .title = "A to A", .from_zero = true,
     .file_text = "mean weight of the first text of a pair on itself", .definition = "Of a pair: mean weight that a query of the first text gives to the first text.", .source = kOurs},
    {.name = "a_to_b", .kind = Kind::region, .title = "A to B", .from_zero = true,
     .file_text = "mean weight of the first text of a pair on the second", .definition = "Of a pair: mean weight that a query of the first text gives to the second.", .source = kOurs},
    {.name = "b_to_a", .kind = Kind::region, .title = "B to A", .from_zero = true,
     .file_text = "mean weight of the second text of a pair on the first", .definition = "Of a pair: mean weight that a query of the second text gives to the first.", .source = kOurs},
    {.name = "b_to_b", .kind = Kind::region, .title = "B to B", .from_zero = true,
     .file_text = "mean weight of the second text of a pair on itself", .definition = "Of a pair: mean weight that a query of the second text gives to the second.", .source = kOurs},
    {.name = "a_to_special", .kind = Kind::region, .title = "A to inserted tokens", .short_title = "A to inserted", .from_zero = true,
     .file_text = "mean weight of the first text of a pair on inserted tokens", .definition = "Of a pair: mean weight of the first text on tokens that the tokenizer inserted.", .source = kOurs},
    {.name = "b_to_special", .kind = Kind::region, .title = "B to inserted tokens", .short_title = "B to inserted", .from_zero = true,
     .file_text = "mean weight of the second text of a pair on inserted tokens", .definition = "Of a pair: mean weight of the second text on tokens that the tokenizer inserted.", .source = kOurs},
    {.name = "special_to_a", .kind = Kind::region, .title = "Inserted tokens to A", .short_title = "Inserted to A", .from_zero = true,
     .file_text = "mean weight of inserted tokens on the first text of a pair", .definition = "Of a pair: mean weight of inserted tokens on the first text.", .source = kOurs},
    {.name = "special_to_b", .kind = Kind::region, .title = "Inserted tokens to B", .short_title = "Inserted to B", .from_zero = true,
     .file_text = "mean weight of inserted tokens on the second text of a pair", .definition = "Of a pair: mean weight of inserted tokens on the second text.", .source = kOurs},
    {.name = "special_to_special", .kind = Kind::region, .title = "Inserted to inserted tokens", .short_title = "Inserted to inserted", .from_zero = true,
     .file_text = "mean weight of inserted tokens on inserted tokens, of a pair", .definition = "Of a pair: mean weight of inserted tokens on inserted tokens.", .source = kOurs},
    {.name = "score_minimum", .kind = Kind::score, .title = "Smallest score", .values = &Statistics::score_minimum,
     .file_text = "least score of an allowed pair", .definition = "Smallest score before the normalizer.", .source = kScores},
    {.name = "score_maximum", .kind = Kind::score, .title = "Largest score", .values = &Statistics::score_maximum,
     .file_text = "greatest score of an allowed pair", .definition = "Largest score before the normalizer.", .source = kScores},
    {.name = "score_mean", .kind = Kind::score, .title = "Mean score", .values = &Statistics::score_mean,
     .file_text = "mean score of the allowed pairs", .definition = "Mean score before the normalizer over all allowed pairs.", .source = kScores},
    {.name = "score_variance", .kind = Kind::score, .title = "Score variance", .from_zero = true, .values = &Statistics::score_variance,
     .file_text = "variance of the allowed pairs' scores, divisor: their number", .definition = "Variance of the scores before the normalizer over all allowed pairs.", .source = kScores},
    {.name = "above_10", .kind = Kind::count, .title = "Scores beyond 10", .from_zero = true,
     .definition = "Number of scores above 10 in absolute value.", .source = kScores},
    {.name = "above_100", .kind = Kind::count, .title = "Scores beyond 100", .from_zero = true,
     .definition = "Number of scores above 100 in absolute value.", .source = kScores},
    {.name = "above_1000", .kind = Kind::count, .title = "Scores beyond 1000", .from_zero = true,
     .definition = "Number of scores above 1000 in absolute value.", .source = kScores},
};
// clang-format on

}  // namespace

std::span<const Indicator> indicators() {
    return kIndicators;
}

std::vector<const Indicator*> indicators_of(IndicatorKind kind) {
    std::vector<const Indicator*> some;
    for (const Indicator& one : kIndicators)
        if (one.kind == kind) some.push_back(&one);
    return some;
}

const Indicator* find_indicator(std::string_view name) {
    for (const Indicator& one : kIndicators)
        if (name == one.name) return &one;
    return nullptr;
}

}  // namespace headscope::kernels
