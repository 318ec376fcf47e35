// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "core/store/hdf5/half.h"
#include "core/store/hdf5/utf8.h"

using headscope::store::float_from_half;
using headscope::store::half_from_float;
using headscope::store::readable_utf8;

TEST_CASE("Every half survives the way through float", "[store]") {
    for (std::uint32_t bits = 0; bits <= 0xFFFFU; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = float_from_half(half);
        if (std::isnan(value))
            REQUIRE(std::isnan(float_from_half(half_from_float(value))));
        else
            REQUIRE(half_from_float(value) == half);
    }
}

TEST_CASE("A float becomes the nearest half, the even one of two", "[store]") {
    // Between two neighbouring halves a and b: just below, at and just above the middle.
    for (std::uint16_t a = 0; a < 0x7BFF; ++a) {
        const float low = float_from_half(a), high = float_from_half(static_cast<std::uint16_t>(a + 1));
        const float middle = low + (high - low) / 2;
        REQUIRE(half_from_float(std::nextafter(middle, low)) == a);
        REQUIRE(half_from_float(std::nextafter(middle, high)) == a + 1);
        REQUIRE(half_from_float(middle) == (a % 2 == 0 ? a : a + 1));
    }
    REQUIRE(half_from_float(65504.0F) == 0x7BFF);
    REQUIRE(half_from_float(65519.0F) == 0x7BFF);
    REQUIRE(half_from_float(65520.0F) == 0x7C00);
    REQUIRE(half_from_float(-std::numeric_limits<float>::infinity()) == 0xFC00);
    REQUIRE(half_from_float(-0.0F) == 0x8000);
}

TEST_CASE("Bytes that are no UTF-8 are spelled out, the rest stays", "[store]") {
    REQUIRE(readable_utf8("a\xC3\xA9\xE6\x9C\x88\xF0\x9F\x98\x80\n") == "a\xC3\xA9\xE6\x9C\x88\xF0\x9F\x98\x80\n");
    REQUIRE(readable_utf8("\xE6\x9C") == "<0xE6><0x9C>");
    REQUIRE(readable_utf8("x\xFFy\xC3") == "x<0xFF>y<0xC3>");
    REQUIRE(readable_utf8("\xED\xA0\x80") == "<0xED><0xA0><0x80>");  // a surrogate
    REQUIRE(readable_utf8("").empty());
}
