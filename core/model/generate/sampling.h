// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Choosing the next token. Own random numbers and float64 sums in a fixed order: the same seed and logits choose the
// same token on every machine.

#include <cstdint>
#include <span>

namespace headscope::model {

/// xoshiro256** by Blackman and Vigna (public domain, 2018), seeded through splitmix64.
class Random {
public:
    explicit Random(std::uint64_t seed);
    std::uint64_t next();
    double uniform();  ///< [0, 1), 53 bits

private:
    std::uint64_t state_[4];
};

/// temperature 0: the index of the largest logit, the first of equal ones. Otherwise a draw from softmax(logits /
/// temperature), from the top_k largest (0: all), of these from the smallest set that reaches top_p of the probability,
/// and of these from those with at least min_p of the largest probability. NaN counts as -inf. `logits` is not empty.
std::int64_t choose_token(std::span<const float> logits, double temperature, std::int64_t top_k, double top_p,
                          Random& random, double min_p = 0);

}  // namespace headscope::model
