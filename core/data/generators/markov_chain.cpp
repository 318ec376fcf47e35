// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/generators/markov_chain.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace headscope::data {
namespace {

std::size_t index(std::int64_t number) {
    return static_cast<std::size_t>(number);
}

/// Nearly normal, and made of additions alone, so that it is the same on every machine.
double normal(Random& random) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return sum;
}

/// The place of a uniform number among cumulative sums that end near 1.
std::int64_t pick(const double* cumulative, std::int64_t count, double uniform) {
    const double* end = cumulative + count;
    const std::int64_t place = std::upper_bound(cumulative, end, uniform * end[-1]) - cumulative;
    return std::min(place, count - 1);
}

}  // namespace

MarkovChain::MarkovChain(std::int64_t symbols, std::int64_t order, double sharpness, std::uint64_t seed)
    : symbols_(symbols), order_(order) {
    for (std::int64_t i = 0; i < order; ++i) states_ *= symbols;
    make_probabilities(sharpness, seed);
    find_stationary();
    measure();
    cumulative_.resize(probabilities_.size());
    for (std::int64_t s = 0; s < states_; ++s) {
        const auto row = probabilities_.begin() + s * symbols_;
        std::partial_sum(row, row + symbols_, cumulative_.begin() + s * symbols_);
    }
    cumulative_state_.resize(stationary_.size());
    std::partial_sum(stationary_.begin(), stationary_.end(), cumulative_state_.begin());
}

void MarkovChain::make_probabilities(double sharpness, std::uint64_t seed) {
    const std::int64_t lags = std::max<std::int64_t>(order_, 1);
    std::vector<std::vector<double>> tables(index(lags));
    for (std::int64_t lag = 0; lag < lags; ++lag) {
        Random random(seed, static_cast<std::uint64_t>(lag));
        tables[index(lag)].resize(index(order_ == 0 ? symbols_ : symbols_ * symbols_));
        for (double& entry : tables[index(lag)]) entry = sharpness * normal(random);
        // No symbol calls for itself: among few symbols one could otherwise hold on for ever.
        for (std::int64_t v = 0; order_ > 0 && v < symbols_; ++v) tables[index(lag)][index(v * symbols_ + v)] = 0;
    }
    probabilities_.resize(index(states_ * symbols_));
    for (std::int64_t s = 0; s < states_; ++s) {
        double* row = probabilities_.data() + s * symbols_;
        std::int64_t digits = s;
        for (std::int64_t lag = 0; lag < lags; ++lag, digits /= symbols_) {
            const double* addition = tables[index(lag)].data() + (order_ == 0 ? 0 : digits % symbols_ * symbols_);
            for (std::int64_t v = 0; v < symbols_; ++v) row[v] += addition[v];
        }
        double sum = 0;
        for (std::int64_t v = 0; v < symbols_; ++v) sum += row[v] = std::exp(row[v]);
        for (std::int64_t v = 0; v < symbols_; ++v) row[v] /= sum;
    }
}

void MarkovChain::find_stationary() {
    // All probabilities are positive, so repeated steps lead there from anywhere.
    constexpr int most_steps = 20000;
    constexpr double settled = 1e-15;
    stationary_.assign(index(states_), 1.0 / static_cast<double>(states_));
    std::vector<double> next(stationary_.size());
    for (int step = 0; step < most_steps; ++step) {
        std::fill(next.begin(), next.end(), 0.0);
        for (std::int64_t s = 0; s < states_; ++s) {
            for (std::int64_t v = 0; v < symbols_; ++v) {
                next[index((s * symbols_ + v) % states_)] +=
                    stationary_[index(s)] * probabilities_[index(s * symbols_ + v)];
            }
        }
        double change = 0;
        for (std::size_t s = 0; s < next.size(); ++s) change += std::abs(next[s] - stationary_[s]);
        stationary_.swap(next);
        if (change < settled) break;
    }
    const double sum = std::accumulate(stationary_.begin(), stationary_.end(), 0.0);
    for (double& p : stationary_) p /= sum;
}

void MarkovChain::measure() {
    // joint[s V + v] = P(state s, then v); summed over the oldest symbols it is that of shorter strings.
    std::vector<double> joint(probabilities_.size());
    for (std::size_t i = 0; i < joint.size(); ++i) joint[i] = stationary_[i / index(symbols_)] * probabilities_[i];
    std::vector<double> entropies;
    for (std::int64_t known = order_;; --known) {
        double entropy = 0;
        for (std::size_t row = 0; row < joint.size(); row += index(symbols_)) {
            const double sum = std::accumulate(joint.begin() + static_cast<std::ptrdiff_t>(row),
                                               joint.begin() + static_cast<std::ptrdiff_t>(row) + symbols_, 0.0);
            for (std::size_t v = 0; v < index(symbols_); ++v) {
                const double p = joint[row + v];
                if (p > 0) entropy -= p * std::log(p / sum);
            }
        }
        entropies.push_back(entropy);
        if (known == 0) break;
        const std::size_t shorter = joint.size() / index(symbols_);
        for (std::size_t i = shorter; i < joint.size(); ++i) joint[i % shorter] += joint[i];
        joint.resize(shorter);
    }
    entropies_.assign(entropies.rbegin(), entropies.rend());
}

void MarkovChain::write(Random& random, std::int64_t count, std::int64_t* to) const {
    std::int64_t state = pick(cumulative_state_.data(), states_, random.uniform());
    std::int64_t digits = state;
    for (std::int64_t i = order_; i-- > 0; digits /= symbols_) {
        if (i < count) to[i] = digits % symbols_;
    }
    for (std::int64_t i = order_; i < count; ++i) {
        to[i] = pick(cumulative_.data() + state * symbols_, symbols_, random.uniform());
        state = (state * symbols_ + to[i]) % states_;
    }
}

}  // namespace headscope::data
