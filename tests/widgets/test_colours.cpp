// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/figures/figure_style.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"
#include "widgets/theme.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

double linear(int channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

struct Lab {
    double l, a, b;
};

/// Ottosson's OKLab from sRGB, the other way round than the code under test.
Lab lab(QRgb colour) {
    const double r = linear(qRed(colour)), g = linear(qGreen(colour)), b = linear(qBlue(colour));
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(QRgb x, QRgb y) {
    const Lab p = lab(x), q = lab(y);
    return std::hypot(p.l - q.l, p.a - q.a, p.b - q.b);
}

double luminance(const QColor& colour) {
    return 0.2126 * linear(colour.red()) + 0.7152 * linear(colour.green()) + 0.0722 * linear(colour.blue());
}

double contrast(const QColor& x, const QColor& y) {
    const double a = luminance(x) + 0.05, b = luminance(y) + 0.05;
    return std::max(a, b) / std::min(a, b);
}

}  // namespace

TEST_CASE("Colour maps change evenly, and sequential ones in lightness all the way", "[widgets][colours]") {
    for (const auto& map : figures::colour_maps()) {
        for (const bool dark : {false, true}) {
            const auto& table = colour_table(map.name, dark);
            // Over eight steps, so that rounding to 8 bits a channel (0.004 at most) does not count.
            double least = 1, most = 0;
            for (std::size_t i = 8; i < table.size(); i += 8) {
                const double step = distance(table[i - 8], table[i]);
                least = std::min(least, step);
                most = std::max(most, step);
            }
            INFO(map.name << ", dark " << dark << ", least " << least << ", most " << most);
            CHECK(most < 1.35 * least);
            if (map.kind == figures::ColourMap::diverging) {
                // Both ends are as far from the page, so that a sign is all that hues say.
                CHECK(std::abs(lab(table.front()).l - lab(table.back()).l) < 0.02);
                continue;
            }
            const bool rising = lab(table.back()).l > lab(table.front()).l;
            for (std::size_t i = 8; i < table.size(); i += 8) CHECK((lab(table[i]).l > lab(table[i - 8]).l) == rising);
        }
    }
}

TEST_CASE("Published colour maps begin, end and are halfway as published", "[widgets][colours]") {
    const auto near = [](QRgb colour, QRgb published) {
        INFO(std::hex << colour << " instead of " << published);
        CHECK(distance(colour, published) < 0.03);
    };
    for (const bool dark : {false, true}) {
        near(colour_table("viridis", dark).front(), 0xff440154);
        near(colour_table("viridis", dark).back(), 0xfffde725);
        near(colour_table("viridis", dark)[128], 0xff21918c);
        near(colour_table("magma", dark).back(), 0xfffcfdbf);
        near(colour_table("magma", dark)[128], 0xffb73779);
        near(colour_table("cividis", dark)[128], 0xff7c7b78);
    }
}

TEST_CASE("A theme's choice of colour maps is drawn with", "[widgets][colours]") {
    Theme theme = make_theme(true);
    CHECK(&colour_table(figures::ColourMap::sequential, theme) == &colour_table("indigo", true));
    theme.sequential_map = "magma";
    theme.diverging_map = "purple-green";
    CHECK(&colour_table(figures::ColourMap::sequential, theme) == &colour_table("magma", true));
    CHECK(&colour_table(figures::ColourMap::diverging, theme) == &colour_table("purple-green", true));
}

TEST_CASE("Values find their place in a colour scale", "[widgets][colours]") {
    figures::ColourScale scale;
    scale.maximum = 4;
    CHECK(fraction(scale, 1) == Approx(0.25));
    CHECK(fraction(scale, 9) == 1);
    scale.scale = figures::ScaleKind::square_root;
    CHECK(fraction(scale, 1) == Approx(0.5));
    scale.scale = figures::ScaleKind::logarithmic;
    scale.minimum = 0.04;
    CHECK(fraction(scale, 0.4) == Approx(0.5));
    CHECK(fraction(scale, 0) == 0);
    CHECK(std::isnan(fraction(scale, std::nan(""))));
    CHECK(colour_of(colour_table(figures::ColourMap::sequential, false), std::nan(""), 7U) == 7U);
}

TEST_CASE("Text and lines can be read on both pages", "[widgets][colours]") {
    for (const bool dark : {false, true}) {
        const Theme theme = make_theme(dark);
        CHECK(contrast(theme.text, theme.background) > 10);
        CHECK(contrast(theme.muted, theme.background) > 4.5);
        CHECK(contrast(theme.accent, theme.background) > 4.5);
        for (int i = 0; i < 7; ++i) CHECK(contrast(theme.categorical(i), theme.background) > (dark ? 3.0 : 2.0));
        CHECK(theme.categorical(-1) == theme.categorical(6));
        for (const QRgb colour : colour_table(figures::ColourMap::sequential, dark)) {
            CHECK(contrast(readable_on(QColor(colour)), QColor(colour)) > 3.9);
        }
    }
}

TEST_CASE("Ticks are round, inside and not too many", "[widgets][ticks]") {
    using figures::ScaleKind;
    CHECK(round_ticks(ScaleKind::linear, 0, 1, 5) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
    CHECK(round_ticks(ScaleKind::logarithmic, 1e-4, 1, 5).size() == 5);
    const auto symmetric = round_ticks(ScaleKind::symmetric_log, -1300, 1300, 8, 8);
    CHECK(std::find(symmetric.begin(), symmetric.end(), 0.0) != symmetric.end());
    CHECK(std::find(symmetric.begin(), symmetric.end(), 1000.0) != symmetric.end());
    CHECK(std::find(symmetric.begin(), symmetric.end(), -1000.0) != symmetric.end());
    for (const double tick : symmetric) CHECK(std::abs(tick) <= 1300);
    CHECK(round_ticks(ScaleKind::linear, 3, 3, 5) == std::vector<double>{3});
    // So far from zero that a step changes nothing: it ends all the same.
    CHECK(round_ticks(ScaleKind::linear, 1e300, std::nextafter(1e300, 2e300), 5).size() <= 1000);
    CHECK(round_ticks(ScaleKind::linear, 1e16, 1e16 + 2, 5).size() <= 1000);
    CHECK(number_label(-0.25) == "−0.25");
    CHECK(number_label(1e-4) == "10⁻⁴");
    CHECK(number_label(25000) == "2.5·10⁴");
    CHECK(number_label(1000) == "1000");
    CHECK(number_label(std::numeric_limits<double>::infinity()) == "∞");
    CHECK(number_label(-std::numeric_limits<double>::infinity()) == "−∞");
    CHECK(number_label(std::numeric_limits<double>::quiet_NaN()) == "–");
    CHECK(round_stride(0.3) == 1);
    CHECK(round_stride(2.1) == 4);
    CHECK(round_stride(11) == 20);
}
