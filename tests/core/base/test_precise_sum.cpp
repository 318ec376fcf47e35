// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/precise_sum.h"
#include "core/base/splitmix64.h"

using namespace headscope;

TEST_CASE("A precise sum depends on neither the order nor the grouping of its terms", "[base]") {
    std::vector<double> terms;
    for (std::uint64_t i = 0; i < 5000; ++i)
        terms.push_back(std::ldexp(static_cast<double>(splitmix64(i) >> 11U), static_cast<int>(i % 40) - 60));
    PreciseSum forwards, backwards, grouped;
    double plain = 0, reversed = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        forwards.add(terms[i]);
        backwards.add(terms[terms.size() - 1 - i]);
        plain += terms[i];
        reversed += terms[terms.size() - 1 - i];
    }
    for (std::size_t i = 0; i < terms.size(); i += 7) {
        PreciseSum part;
        for (std::size_t k = i; k < std::min(i + 7, terms.size()); ++k) part.add(terms[k]);
        grouped.add(part);
    }
    CHECK(plain != reversed);
    CHECK(forwards.value() == backwards.value());
    CHECK(forwards.value() == grouped.value());
    CHECK(forwards.value() == Approx(plain).epsilon(1e-12));
}

TEST_CASE("A precise sum keeps what doubles round off, and infinities", "[base]") {
    PreciseSum sum;
    for (const double term : {1.0, 1e100, 1.0, -1e100}) sum.add(term);
    CHECK(sum.value() == 2);
    sum.add(std::numeric_limits<double>::infinity());
    CHECK(sum.value() == std::numeric_limits<double>::infinity());
    CHECK(PreciseSum().value() == 0);
}
