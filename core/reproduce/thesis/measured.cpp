// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/thesis/measured.h"

#include <cmath>

#include "core/cost/thesis.h"

namespace headscope::reproduce::thesis {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double attention_of(const Measured& measured, std::string_view model, Stack stack) {
    const auto found = measured.attention.find({std::string(model), stack});
    return found == measured.attention.end() ? kNone : static_cast<double>(found->second);
}

}  // namespace

std::string score_name(Score score) {
    switch (score) {
        case Score::passages:
            return "passages told apart";
        case Score::spoilt:
            return "spoilt tokens told";
        case Score::perplexity:
            return "perplexity";
        case Score::bleu:
            return "BLEU";
    }
    return "";
}

bool lower_is_better(Score score) {
    return score == Score::perplexity;
}

Stack stack_of(Score score) {
    return score == Score::perplexity ? Stack::decoder : score == Score::bleu ? Stack::translation : Stack::encoder;
}

Estimate score_of(const Measured& measured, std::string_view model, Score score) {
    const auto found = measured.scores.find({std::string(model), score});
    if (found == measured.scores.end() || found->second.values.empty()) return {};
    const Spread spread = spread_of(found->second.values);
    const double root = std::sqrt(static_cast<double>(spread.count));
    return {spread.mean, std::fmax(spread.deviation, found->second.error) / root};
}

Estimate merit_of(const Measured& measured, std::string_view model, Score score) {
    Estimate merit = score_of(measured, model, score);
    if (lower_is_better(score)) merit.value = -merit.value;
    return merit;
}

double retention(const Measured& measured, std::string_view model, std::string_view baseline, Score score) {
    return cost::performance_retention(score_of(measured, model, score).value,
                                       score_of(measured, baseline, score).value, lower_is_better(score));
}

Estimate elasticity(const Measured& measured, std::string_view model, Score score) {
    const Estimate own = score_of(measured, model, score), smallest = score_of(measured, kSmallest, score);
    const double parameters = attention_of(measured, model, stack_of(score)),
                 fewest = attention_of(measured, kSmallest, stack_of(score)), more = parameters / fewest - 1;
    // FNet and Linear have nothing that heads share.
    if (!(std::abs(more) > 0) || thesis::model(Chapter::heads, model).encoder_only) return {};
    return {cost::performance_elasticity(own.value, smallest.value, parameters, fewest, lower_is_better(score)),
            std::hypot(own.error, own.value / smallest.value * smallest.error) / std::abs(smallest.value * more)};
}

double count_of(const std::map<std::string, std::int64_t>& counts, std::string_view model) {
    const auto found = counts.find(std::string(model));
    return found == counts.end() || found->second < 0 ? kNone : static_cast<double>(found->second);
}

}  // namespace headscope::reproduce::thesis
