// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/theme.h"

#include <array>
#include <cmath>

namespace headscope::widgets {
namespace {

constexpr std::array<QRgb, 7> kOnLight{0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7,
                                       0xffe69f00, 0xff56b4e9, 0xff555555};
// The same hues, lighter, so that each keeps a contrast of 3 : 1 or more on the dark background.
constexpr std::array<QRgb, 7> kOnDark{0xff4aa3e0, 0xfff08a4b, 0xff2fc79b, 0xffe3a3c6,
                                      0xfff0b840, 0xff8fd0f5, 0xffb5b5b5};

double linear(double channel) {
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

}  // namespace

QColor Theme::categorical(int index) const {
    const auto& colours = dark ? kOnDark : kOnLight;
    const auto n = static_cast<int>(colours.size());
    return QColor::fromRgb(colours[static_cast<std::size_t>(((index % n) + n) % n)]);
}

Theme make_theme(bool dark) {
    Theme theme;
    theme.dark = dark;
    if (dark) {
        theme.background = QColor(0x17, 0x19, 0x1d);
        theme.text = QColor(0xec, 0xec, 0xec);
        theme.muted = QColor(0xa8, 0xac, 0xb2);
        theme.line = QColor(0xb8, 0xbc, 0xc2);
        theme.grid = QColor(0x3b, 0x3f, 0x46);
        theme.none = QColor(0x2b, 0x2e, 0x34);
        theme.zero = QColor(0x4f, 0x41, 0x22);
        theme.accent = QColor(0xff, 0x8a, 0x5c);
    } else {
        theme.background = Qt::white;
        theme.text = QColor(0x18, 0x18, 0x18);
        theme.muted = QColor(0x5c, 0x5c, 0x5c);
        theme.line = QColor(0x40, 0x40, 0x40);
        theme.grid = QColor(0xd4, 0xd4, 0xd4);
        theme.none = QColor(0xe9, 0xe9, 0xe9);
        theme.zero = QColor(0xf2, 0xdf, 0xb6);
        theme.accent = QColor(0xc0, 0x3a, 0x00);
    }
    return theme;
}

QColor region_colour(int region, const Theme& theme) {
    return theme.categorical(region == 1 ? 0 : 1);
}

QColor type_colour(int type, const Theme& theme) {
    return theme.categorical(type == 0 ? 0 : 4);
}

QString type_letter(int type) {
    return type == 0 ? QStringLiteral("S") : QStringLiteral("L");
}

QColor readable_on(const QColor& background) {
    const double luminance =
        0.2126 * linear(background.redF()) + 0.7152 * linear(background.greenF()) + 0.0722 * linear(background.blueF());
    return luminance > 0.22 ? QColor(0x10, 0x10, 0x10) : QColor(0xff, 0xff, 0xff);
}

}  // namespace headscope::widgets
