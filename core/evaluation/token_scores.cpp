// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/token_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headscope::evaluation {
namespace {

constexpr double kNoTokenScore = std::numeric_limits<double>::quiet_NaN();

double share(double part, std::int64_t whole) {
    return whole > 0 ? part / static_cast<double>(whole) : kNoTokenScore;
}

}  // namespace

void TokenScores::add(const SequenceScore& score) {
    if (score.targets == 0) return;
    const auto n = static_cast<double>(score.targets), correct = static_cast<double>(score.correct),
               five = static_cast<double>(score.in_five);
    sum_.loss += score.loss;
    sum_.targets += score.targets;
    sum_.correct += score.correct;
    sum_.in_five += score.in_five;
    ++sequences_;
    nn_ += n * n;
    loss_loss_ += score.loss * score.loss;
    loss_n_ += score.loss * n;
    correct_correct_ += correct * correct;
    correct_n_ += correct * n;
    five_five_ += five * five;
    five_n_ += five * n;
}

double TokenScores::ratio_error(double xx, double xn, double x) const {
    if (sequences_ < 2) return kNoTokenScore;
    const auto n = static_cast<double>(sum_.targets), k = static_cast<double>(sequences_);
    const double mean = x / n;
    const double deviations = std::max(0.0, xx - 2 * mean * xn + mean * mean * nn_);
    return std::sqrt(deviations * k / (k - 1)) / n;
}

double TokenScores::loss() const {
    return share(sum_.loss, sum_.targets);
}
double TokenScores::loss_error() const {
    return ratio_error(loss_loss_, loss_n_, sum_.loss);
}
double TokenScores::accuracy() const {
    return share(static_cast<double>(sum_.correct), sum_.targets);
}
double TokenScores::accuracy_error() const {
    return ratio_error(correct_correct_, correct_n_, static_cast<double>(sum_.correct));
}
double TokenScores::in_five() const {
    return share(static_cast<double>(sum_.in_five), sum_.targets);
}
double TokenScores::in_five_error() const {
    return ratio_error(five_five_, five_n_, static_cast<double>(sum_.in_five));
}

}  // namespace headscope::evaluation
