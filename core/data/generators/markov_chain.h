// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/random.h"

namespace headscope::data {

/// A stationary Markov chain of some order over V symbols. The logits of the next symbol are a sum over the last
/// `order` symbols: for the one j places back, a row of a table of standard normal numbers (0 for itself) times
/// `sharpness`. So each symbol adds information of its own, and a model can learn them separately. With order 0 they
/// are one row.
class MarkovChain {
public:
    /// symbols^(order + 1) must not be above most_entries.
    MarkovChain(std::int64_t symbols, std::int64_t order, double sharpness, std::uint64_t seed);
    static constexpr std::int64_t most_entries = std::int64_t{1} << 22;

    std::int64_t symbols() const noexcept { return symbols_; }
    std::int64_t order() const noexcept { return order_; }
    /// Writes `count` symbols from the stationary distribution on.
    void write(Random& random, std::int64_t count, std::int64_t* to) const;
    /// H(next | j symbols before it) in nats for j = 0 to order; exact but for rounding.
    const std::vector<double>& entropies() const noexcept { return entropies_; }
    /// P(next | state): [states, V]; a state is the last `order` symbols, the oldest one first, as digits.
    const std::vector<double>& probabilities() const noexcept { return probabilities_; }
    const std::vector<double>& stationary() const noexcept { return stationary_; }  ///< [states]

private:
    void make_probabilities(double sharpness, std::uint64_t seed);
    void find_stationary();
    void measure();

    std::int64_t symbols_, order_, states_ = 1;
    std::vector<double> probabilities_, stationary_;
    std::vector<double> cumulative_;        ///< of each row of probabilities
    std::vector<double> cumulative_state_;  ///< of the stationary distribution
    std::vector<double> entropies_;
};

}  // namespace headscope::data
