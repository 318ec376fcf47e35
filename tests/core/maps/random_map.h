// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "core/maps/head_map.h"

namespace headscope::tests {

inline constexpr std::int64_t kKeySize = 4;

/// Random queries and keys; row constants by the plain sum.
inline std::shared_ptr<const maps::HeadMap> random_map(std::int64_t queries, std::int64_t keys,
                                                       const kernels::ScoreRule& rule, unsigned seed = 0) {
    std::mt19937 random(static_cast<unsigned>(queries * 31 + keys) + seed);
    std::uniform_real_distribution<float> number(-2.0F, 2.0F);
    std::vector<float> query(static_cast<std::size_t>(queries * kKeySize)),
        key(static_cast<std::size_t>(keys * kKeySize));
    std::generate(query.begin(), query.end(), [&] { return number(random); });
    std::generate(key.begin(), key.end(), [&] { return number(random); });
    const maps::HeadMap plain(query, key, std::vector<float>(static_cast<std::size_t>(queries)), kKeySize, rule);
    std::vector<float> constants;
    for (std::int64_t i = 0; i < queries; ++i) {
        double sum = 0;
        for (const float s : plain.scores({i, i + 1, 0, keys}))
            if (!std::isnan(s)) sum += std::exp(double{s});
        constants.push_back(sum > 0 ? static_cast<float>(std::log(sum)) : std::numeric_limits<float>::infinity());
    }
    return std::make_shared<const maps::HeadMap>(query, key, constants, kKeySize, rule);
}

}  // namespace headscope::tests
