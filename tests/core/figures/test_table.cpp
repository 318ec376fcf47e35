// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/error.h"
#include "core/figures/make_figure.h"
#include "core/figures/table.h"

using namespace headscope;
using figures::Table;

TEST_CASE("A table becomes RFC 4180 text", "[figures][csv]") {
    const Table table{
        {{"model", std::vector<std::string>{"plain", "a,b", "say \"hi\"", "two\nlines"}},
         {"layer", std::vector<std::int64_t>{0, 1, -1, 47}},
         {"value", std::vector<double>{0.1, std::nan(""), -std::numeric_limits<double>::infinity(), 1e-300}}}};
    CHECK(figures::csv(table) ==
          "model,layer,value\r\n"
          "plain,0,0.1\r\n"
          "\"a,b\",1,\r\n"
          "\"say \"\"hi\"\"\",-1,-inf\r\n"
          "\"two\nlines\",47,1e-300\r\n");
}

TEST_CASE("Numbers in CSV read back to the same bits", "[figures][csv]") {
    for (const double value :
         {0.1, 1.0 / 3, 2.0 / 3 * 1e17, 5e-324, std::numeric_limits<double>::max(), -0.0, 123456789.0}) {
        const std::string text = figures::csv_number(value);
        const double back = std::strtod(text.c_str(), nullptr);
        CHECK(back == value);
        CHECK(std::signbit(back) == std::signbit(value));
    }
}

TEST_CASE("Columns of unlike length are a bug that is reported", "[figures][csv]") {
    const Table table{{{"a", std::vector<double>{1, 2}}, {"b", std::vector<double>{1}}}};
    CHECK_THROWS_AS(figures::csv(table), Error);
    CHECK_THROWS_AS(figures::figure_csv(figures::FigureData{}), Error);
}

TEST_CASE("The symmetric-log scale is odd, linear inside and smooth where it turns", "[figures][scale]") {
    using figures::ScaleKind;
    const auto f = [](double x) { return figures::scaled(ScaleKind::symmetric_log, x, 8); };
    CHECK(f(0) == 0);
    CHECK(f(4) == Approx(0.5));
    CHECK(f(8) == Approx(1));
    CHECK(f(-100) == Approx(-f(100)));
    CHECK(f(800) - f(80) == Approx(std::log(10.0)));
    const double step = 1e-6;
    CHECK((f(8 + step) - f(8)) / step == Approx((f(8) - f(8 - step)) / step).epsilon(1e-5));
    CHECK(std::isinf(figures::scaled(ScaleKind::logarithmic, 0)));
}
