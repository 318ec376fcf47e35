// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/model/generate/sampling.h"

using headscope::model::choose_token;
using headscope::model::Random;

TEST_CASE("Random numbers are those of xoshiro256** seeded by splitmix64", "[model][sampling]") {
    // Computed by the authors' formulas in Python's integers.
    Random random(42);
    CHECK(random.next() == 1546998764402558742ULL);
    CHECK(random.next() == 6990951692964543102ULL);
    CHECK(random.next() == 12544586762248559009ULL);
    for (int i = 0; i < 1000; ++i) {
        const double value = random.uniform();
        REQUIRE(value >= 0);
        REQUIRE(value < 1);
    }
}

TEST_CASE("Temperature 0 takes the first of the largest logits", "[model][sampling]") {
    Random random(1);
    const std::vector<float> logits{1, 3, std::numeric_limits<float>::quiet_NaN(), 3, -2};
    CHECK(choose_token(logits, 0, 0, 1, random) == 1);
    CHECK(choose_token(std::vector<float>{-5}, 0, 0, 1, random) == 0);
}

TEST_CASE("Draws follow the softmax at the temperature", "[model][sampling]") {
    const std::vector<float> logits{0, std::log(2.0F), std::log(5.0F)};
    Random random(7);
    std::vector<int> count(3);
    const int draws = 40000;
    for (int i = 0; i < draws; ++i) ++count[static_cast<std::size_t>(choose_token(logits, 1, 0, 1, random))];
    // Four standard deviations of a binomial share.
    const double bound = 4 * std::sqrt(0.25 / draws);
    CHECK(std::abs(count[0] / double(draws) - 1.0 / 8) < bound);
    CHECK(std::abs(count[1] / double(draws) - 2.0 / 8) < bound);
    CHECK(std::abs(count[2] / double(draws) - 5.0 / 8) < bound);

    std::vector<int> flat(3);
    for (int i = 0; i < draws; ++i) ++flat[static_cast<std::size_t>(choose_token(logits, 2, 0, 1, random))];
    const double total = 1 + std::sqrt(2.0) + std::sqrt(5.0);
    CHECK(std::abs(flat[2] / double(draws) - std::sqrt(5.0) / total) < bound);
}

TEST_CASE("Top-k and top-p cut the tail", "[model][sampling]") {
    const std::vector<float> logits{0, std::log(2.0F), std::log(5.0F), -30};
    Random random(3);
    for (int i = 0; i < 500; ++i) {
        CHECK(choose_token(logits, 1, 1, 1, random) == 2);
        CHECK(choose_token(logits, 1, 2, 1, random) != 0);
        CHECK(choose_token(logits, 1, 0, 0.6, random) == 2);  // 5/8 reaches it
        CHECK(choose_token(logits, 1, 0, 0.7, random) >= 1);  // 5/8 + 2/8
        CHECK(choose_token(logits, 1, 99, 1, random) != 3);
    }
}
