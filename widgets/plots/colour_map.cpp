// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/colour_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <tuple>
#include <utility>
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

/// The page's colour to its opposite.
ColourTable grey(bool dark) {
    return walked([dark](double t) { return Lab{dark ? 0.2 + 0.78 * t : 0.985 - 0.785 * t, 0, 0}; });
}

/// One hue below, another above, both as far from the page.
ColourTable diverging(bool dark, double below, double above) {
    return walked([=](double t) {
        const double u = 2 * t - 1;
        const double far = std::abs(u);
        const double lightness = dark ? 0.26 + 0.56 * far : 0.975 - 0.535 * far;
        return polar(lightness, 0.165 * std::pow(far, 0.9), u < 0 ? below : above);
    });
}

Lab lab(QRgb colour) {
    const auto decoded = [](int channel) {
        const double c = channel / 255.0;
        return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    };
    const double r = decoded(qRed(colour)), g = decoded(qGreen(colour)), b = decoded(qBlue(colour));
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

using ControlColours = std::array<QRgb, 10>;

/// A smooth curve (Catmull and Rom's) through the colours.
ColourTable through(const ControlColours& colours) {
    std::array<Lab, std::tuple_size_v<ControlColours>> points{};
    std::transform(colours.begin(), colours.end(), points.begin(), lab);
    return walked([&points](double t) {
        const double place = t * static_cast<double>(points.size() - 1);
        const auto i = std::min(static_cast<std::size_t>(place), points.size() - 2);
        const double u = place - static_cast<double>(i);
        const auto at = [&](double Lab::*part) {
            const double p1 = points[i].*part, p2 = points[i + 1].*part;
            const double p0 = i > 0 ? points[i - 1].*part : 2 * p1 - p2;
            const double p3 = i + 2 < points.size() ? points[i + 2].*part : 2 * p2 - p1;
            return p1 + 0.5 * u * (p2 - p0 + u * (2 * p0 - 5 * p1 + 4 * p2 - p3 + u * (3 * (p1 - p2) + p3 - p0)));
        };
        return Lab{at(&Lab::l), at(&Lab::a), at(&Lab::b)};
    });
}

// Ten even steps of the published maps (van der Walt and Smith; Nuñez, Anderton and Renslow), released as CC0.
constexpr ControlColours kViridis{0xff440154, 0xff482878, 0xff3e4a89, 0xff31688e, 0xff26828e,
                                  0xff1f9e89, 0xff35b779, 0xff6dcd59, 0xffb4de2c, 0xfffde725};
constexpr ControlColours kCividis{0xff00204d, 0xff00336f, 0xff39486b, 0xff575c6d, 0xff707173,
                                  0xff8a8779, 0xffa69d75, 0xffc4b56c, 0xffe4cf5b, 0xffffea46};
constexpr ControlColours kMagma{0xff000004, 0xff180f3e, 0xff451077, 0xff721f81, 0xff9f2f7f,
                                0xffcd4071, 0xfff1605d, 0xfffd9567, 0xfffec98d, 0xfffcfdbf};

ColourTable made(const std::string& name, bool dark) {
    if (name == "viridis") return through(kViridis);
    if (name == "cividis") return through(kCividis);
    if (name == "magma") return through(kMagma);
    if (name == "grey") return grey(dark);
    if (name == "blue-red") return diverging(dark, 255, 35);
    if (name == "blue-orange") return diverging(dark, 255, 62);
    if (name == "purple-green") return diverging(dark, 315, 145);
    return sequential(dark);
}

}  // namespace

const ColourTable& colour_table(const std::string& name, bool dark) {
    // Tables stay where they are: a map's nodes do not move.
    static std::mutex mutex;
    static std::map<std::pair<std::string, bool>, ColourTable> tables;
    const std::lock_guard lock(mutex);
    const auto key = std::pair(name, dark);
    auto found = tables.find(key);
    if (found == tables.end()) found = tables.emplace(key, made(name, dark)).first;
    return found->second;
}

const ColourTable& colour_table(figures::ColourMap map, const Theme& theme) {
    return colour_table(map == figures::ColourMap::diverging ? theme.diverging_map : theme.sequential_map, theme.dark);
}

QColor member_colour(const Theme& theme, int colour, double shade) {
    constexpr double kNearPage = 0.22;
    if (std::isnan(shade)) return theme.categorical(colour);
    const auto& table = colour_table(figures::ColourMap::sequential, theme);
    return QColor(colour_of(table, kNearPage + (1 - kNearPage) * std::clamp(shade, 0.0, 1.0), 0));
}

const ColourTable& colour_table(figures::ColourMap map, bool dark) {
    return colour_table(map, make_theme(dark));
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
