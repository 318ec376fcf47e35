// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/splitmix64.h"

namespace headscope::model {
namespace {

std::uint64_t rotate_left(std::uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

float value_of(float logit) {
    return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
}

}  // namespace

Random::Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = splitmix64(seed += 0x9E3779B97F4A7C15ULL);
}

std::uint64_t Random::next() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate_left(state_[3], 45);
    return result;
}

double Random::uniform() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::int64_t choose_token(std::span<const float> logits, double temperature, std::int64_t top_k, double top_p,
                          Random& random, double min_p) {
    const auto less = [&](std::size_t a, std::size_t b) { return value_of(logits[a]) < value_of(logits[b]); };
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t best = *std::max_element(order.begin(), order.end(), less);
    if (temperature <= 0 || std::isinf(value_of(logits[best]))) return static_cast<std::int64_t>(best);

    // Sorted, largest first, equal ones by index: cutting is then a prefix.
    const std::size_t kept = top_k > 0 ? std::min(order.size(), static_cast<std::size_t>(top_k)) : order.size();
    const auto before = [&](std::size_t a, std::size_t b) { return less(b, a) || (!less(a, b) && a < b); };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), before);
    order.resize(kept);
    std::vector<double> mass(kept);
    double total = 0;
    const double largest = value_of(logits[order.front()]);
    for (std::size_t i = 0; i < kept; ++i) {
        mass[i] = std::exp((value_of(logits[order[i]]) - largest) / temperature);
        total += mass[i];
    }
    double reached = 0;
    std::size_t count = 0;
    while (count < kept && (count == 0 || (reached < top_p * total && mass[count] >= min_p * mass[0])))
        reached += mass[count++];

    const double draw = random.uniform() * reached;
    double passed = 0;
    for (std::size_t i = 0; i < count; ++i) {
        passed += mass[i];
        if (draw < passed) return static_cast<std::int64_t>(order[i]);
    }
    return static_cast<std::int64_t>(order[count - 1]);
}

}  // namespace headscope::model
