// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace headscope::evaluation {

/// Summed scores of one sequence's targets.
struct SequenceScore {
    double loss = 0;  ///< nats, summed over the targets
    std::int64_t targets = 0;
    std::int64_t correct = 0;  ///< targets with the largest logit
    std::int64_t in_five = 0;  ///< targets among the five largest logits
};

/// Sums over sequences (windows of a text, texts of a generator), from which every metric follows. Standard errors take
/// the sequences as independent and make no assumption about tokens within one: NaN for fewer than two.
class TokenScores {
public:
    void add(const SequenceScore& score);

    std::int64_t sequences() const { return sequences_; }
    std::int64_t targets() const { return sum_.targets; }
    double loss_sum() const { return sum_.loss; }
    double loss() const;  ///< nats a target; NaN without any
    double loss_error() const;
    double accuracy() const;  ///< share of targets with the largest logit
    double accuracy_error() const;
    double in_five() const;
    double in_five_error() const;

private:
    /// Standard error of the ratio sum x / sum n over sequences, from sums of products (clustered samples).
    double ratio_error(double xx, double xn, double x) const;

    SequenceScore sum_;
    std::int64_t sequences_ = 0;
    double nn_ = 0;
    double loss_loss_ = 0, loss_n_ = 0, correct_correct_ = 0, correct_n_ = 0, five_five_ = 0, five_n_ = 0;
};

}  // namespace headscope::evaluation
