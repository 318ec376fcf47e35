// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What a replay of the thesis measured, and its ratios: performance retention (PRR), performance elasticity of
// parameters (PEoP), compression (PCR), proportion of embeddings (PoEP), from exact counts of parameters.

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/thesis/plan.h"

namespace headscope::reproduce::thesis {

/// What a model is scored by: the share of passages told right, of spoilt tokens told right, perplexity, BLEU.
enum class Score { passages, spoilt, perplexity, bleu };
std::string score_name(Score score);
bool lower_is_better(Score score);
Stack stack_of(Score score);

struct SeedScores {
    std::vector<double> values{};                             ///< of each seed
    double error = std::numeric_limits<double>::quiet_NaN();  ///< the largest standard error of one; NaN: not known
};

struct Measured {
    std::map<std::pair<std::string, Score>, SeedScores> scores;       ///< by model
    std::map<std::pair<std::string, Stack>, std::int64_t> attention;  ///< parameters of all attention sublayers
    std::map<std::string, std::int64_t> parameters, embedding;        ///< of the tuned encoders
    std::map<std::string, double> training_ms, forward_ms;            ///< a sample
};

/// Mean over seeds; its error is the larger of what seeds and what the items asked say, NaN where neither does.
/// Nothing: NaN.
Estimate score_of(const Measured& measured, std::string_view model, Score score);
/// The same, negated where lower is better.
Estimate merit_of(const Measured& measured, std::string_view model, Score score);
/// Share of 1.
double retention(const Measured& measured, std::string_view model, std::string_view baseline, Score score);
/// Against SHA, with the errors of both scores.
Estimate elasticity(const Measured& measured, std::string_view model, Score score);
/// NaN where it is not known.
double count_of(const std::map<std::string, std::int64_t>& counts, std::string_view model);

}  // namespace headscope::reproduce::thesis
