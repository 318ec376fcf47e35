// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/colour_map.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace headscope::widgets {
namespace {

struct Lab {
    double l, a, b;
};

Lab polar(double lightness, double chroma, double degrees) {
    const double hue = degrees * std::numbers::pi / 180.0;
    return {lightness, chroma * std::cos(hue), chroma * std::sin(hue)};
}

std::array<double, 3> linear_rgb(const Lab& lab) {
    const double l = std::pow(lab.l + 0.3963377774 * lab.a + 0.2158037573 * lab.b, 3);
    const double m = std::pow(lab.l - 0.1055613458 * lab.a - 0.0638541728 * lab.b, 3);
    const double s = std::pow(lab.l - 0.0894841775 * lab.a - 1.2914855480 * lab.b, 3);
    return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool in_gamut(const Lab& lab) {
    const auto rgb = linear_rgb(lab);
    return std::all_of(rgb.begin(), rgb.end(), [](double c) { return c >= -1e-6 && c <= 1 + 1e-6; });
}

/// The most colourful one of the same lightness and hue that a screen can show.
Lab shown(const Lab& lab) {
    if (in_gamut(lab)) return lab;
    double low = 0, high = 1;
    for (int i = 0; i < 40; ++i) {
        const double middle = (low + high) / 2;
        (in_gamut({lab.l, lab.a * middle, lab.b * middle}) ? low : high) = middle;
    }
    return {lab.l, lab.a * low, lab.b * low};
}

QRgb rgb(const Lab& lab) {
    const auto linear = linear_rgb(lab);
    std::array<int, 3> channels{};
    for (std::size_t i = 0; i < 3; ++i) {
        const double c = std::clamp(linear[i], 0.0, 1.0);
        const double encoded = c <= 0.0031308 ? 12.92 * c : 1.055 * std::pow(c, 1 / 2.4) - 0.055;
        channels[i] = static_cast<int>(std::lround(encoded * 255));
    }
    return qRgb(channels[0], channels[1], channels[2]);
}

/// Walks the path in steps of equal length.
template <class Path>
ColourTable walked(const Path& path) {
    constexpr int kFine = 4096;
    std::vector<Lab> points;
    std::vector<double> length{0};
    for (int i = 0; i <= kFine; ++i) {
        points.push_back(shown(path(static_cast<double>(i) / kFine)));
        if (i > 0) {
            const auto& p = points[static_cast<std::size_t>(i)];
            const auto& q = points[static_cast<std::size_t>(i) - 1];
            length.push_back(length.back() + std::hypot(p.l - q.l, p.a - q.a, p.b - q.b));
        }
    }
    ColourTable table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
        const double wanted = length.back() * static_cast<double>(i) / (kMapColours - 1);
        const auto at = std::lower_bound(length.begin(), length.end(), wanted) - length.begin();
        table[i] = rgb(points[static_cast<std::size_t>(at)]);
    }
    return table;
}

/// Pale yellow over green and blue to indigo; the other way round on a dark page.
ColourTable sequential(bool dark) {
    return walked([dark](double t) {
        const double u = dark ? 1 - t : t;
        const double lightness = dark ? 0.955 - 0.735 * u : 0.985 - 0.745 * u;
        const double hue = 100 + 185 * std::pow(u, 0.85);
        // Little colour where the page begins, so that empty cells do not shine.
        const double near_page = dark ? std::min(1.0, (1 - u) * 6 + 0.25) : std::min(1.0, u * 6 + 0.06);
        return polar(lightness, 0.145 * near_page, hue);
    });
}

/// Blue below, red above.
ColourTable diverging(bool dark) {
    return walked([dark](double t) {
        const double u = 2 * t - 1;
        const double far = std::abs(u);
        const double lightness = dark ? 0.26 + 0.56 * far : 0.975 - 0.535 * far;
        return polar(lightness, 0.165 * std::pow(far, 0.9), u < 0 ? 255 : 35);
    });
}

}  // namespace

const ColourTable& colour_table(figures::ColourMap map, bool dark) {
    static const std::array<ColourTable, 4> tables{sequential(false), sequential(true), diverging(false),
                                                   diverging(true)};
    return tables[(map == figures::ColourMap::diverging ? 2U : 0U) + (dark ? 1U : 0U)];
}

double fraction(const figures::ColourScale& scale, double value) {
    if (std::isnan(value)) return value;
    const double low = figures::scaled(scale.scale, scale.minimum);
    const double high = figures::scaled(scale.scale, scale.maximum);
    const double at = figures::scaled(scale.scale, std::clamp(value, scale.minimum, scale.maximum));
    return high > low ? std::clamp((at - low) / (high - low), 0.0, 1.0) : 0.5;
}

QRgb colour_of(const ColourTable& table, double fraction, QRgb none) {
    if (std::isnan(fraction)) return none;
    return table[static_cast<std::size_t>(std::lround(fraction * (kMapColours - 1)))];
}

}  // namespace headscope::widgets
