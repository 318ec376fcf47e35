// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/series.h"

using namespace headscope;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kEndless = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

}  // namespace

TEST_CASE("A mean of finite values leaves others out", "[base][series]") {
    const Numbers values{1, kNone, 6, 3, kEndless, 8};
    CHECK(finite_mean(values) == 4.5);
    CHECK(finite_mean(values, 0, 2, 3) == 2);
    CHECK(finite_mean(values, 2, 2, 3) == 7);
    CHECK(std::isnan(finite_mean(values, 1, 2, 3)));
    CHECK(std::isnan(finite_mean(Numbers{})));
}

TEST_CASE("Pearson's correlation is 1 along a rising line, and none of a constant", "[base][series]") {
    CHECK(correlation(Numbers{1, 2, 3}, Numbers{5, 7, 9}) == Approx(1));
    CHECK(correlation(Numbers{1, 2, 3}, Numbers{1, 0, -1}) == Approx(-1));
    // Deviations -1.5 -0.5 0.5 1.5 and -1 1 -1 1: products 2, squares 5 and 4.
    CHECK(correlation(Numbers{1, 2, 3, 4}, Numbers{0, 2, 0, 2}) == Approx(2 / std::sqrt(20.0)));
    CHECK(std::isnan(correlation(Numbers{1, 2}, Numbers{3, 3})));
    CHECK(std::isnan(correlation(Numbers{}, Numbers{})));
}

TEST_CASE("A running mean is that of the last finite values", "[base][series]") {
    CHECK(running_mean(Numbers{1, 2, kNone, 4, 5}, 2) == Numbers{1, 1.5, 2, 4, 4.5});
    CHECK(running_mean(Numbers{2, kEndless, 4}, 9) == Numbers{2, 2, 3});
    CHECK(running_mean(Numbers{}, 3).empty());
}

TEST_CASE("A centered running mean takes as many values before as behind", "[base][series]") {
    const auto means = running_mean(Numbers{kNone, 2, 4, kNone, kNone, kNone, 6}, 3, 1);
    CHECK(means[0] == 2);
    CHECK(means[1] == 3);
    CHECK(means[2] == 3);
    CHECK(means[3] == 4);
    CHECK(std::isnan(means[4]));
    CHECK(means[5] == 6);
    CHECK(means[6] == 6);
    CHECK(running_mean(Numbers{1, 5}, 9, 4) == Numbers{3, 3});
    CHECK(running_mean(Numbers{1, 5, 7}, 1, 0) == Numbers{1, 5, 7});
}

TEST_CASE("The smoothed curve is the mean with falling weights, without the pull of its begin", "[base][series]") {
    const Numbers values{4, kNone, 2, 8};
    CHECK(std::isnan(smoothed(Numbers{kNone}, 0.5).front()));
    const auto plain = smoothed(values, 0);
    CHECK(plain[0] == 4);
    CHECK(plain[1] == 4);
    CHECK(plain[3] == 8);
    const auto half = smoothed(values, 0.5);
    CHECK(half[0] == 4);
    CHECK(half[2] == Approx((4 * 0.5 + 2) / 1.5));
    CHECK(half[3] == Approx((4 * 0.25 + 2 * 0.5 + 8) / 1.75));
    const Numbers same(1000, 3.5);
    for (const double value : smoothed(same, 0.99)) CHECK(value == Approx(3.5).epsilon(1e-12));
}

TEST_CASE("Kept points have every peak, and the ends where they are wanted", "[base][series]") {
    Numbers values(10'007, 1);
    values[4321] = 9;
    values[9000] = -3;
    values[17] = kNone;
    for (const bool ends : {false, true}) {
        const auto kept = kept_points(values, 400, ends);
        CHECK(kept.size() <= (ends ? 402 : 400));
        CHECK(std::is_sorted(kept.begin(), kept.end()));
        CHECK(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
        for (const std::size_t peak : {4321, 9000}) CHECK(std::find(kept.begin(), kept.end(), peak) != kept.end());
        CHECK((kept.back() == values.size() - 1) == ends);
    }
    CHECK(kept_points(Numbers{3, 1, 2}, 3, false) == std::vector<std::size_t>{0, 1, 2});
    CHECK(kept_points(Numbers{3, 1, 2}, 2, false) == std::vector<std::size_t>{0, 1});
    CHECK(kept_points(Numbers{3, 1, 2}, 2, true) == std::vector<std::size_t>{0, 1, 2});
    CHECK(kept_points(Numbers{}, 2, true).empty());
}
