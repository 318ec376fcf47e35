// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QGlyphRun>
#include <QString>
#include <string>
#include <vector>

namespace headscope::widgets {

// A figure is laid out in units of a quarter point, whatever it is drawn on: the same on every screen and on none.
inline constexpr int kUnitsPerInch = 288;
constexpr double units(double millimetres) {
    return millimetres * kUnitsPerInch / 25.4;
}
constexpr double units_of_points(double points) {
    return points * kUnitsPerInch / 72.0;
}

/// The chosen family (FigureFont), then what set-up installs for everything that it lacks; unhinted, sized in units.
/// `points` is rounded to a quarter point.
QFont figure_font(double points, bool bold = false);

/// While it lives, figure_font() is of another family than Noto Sans. One thread draws; they may not be nested.
/// Throws Error (usage) when no such family is installed.
class FigureFont {
public:
    explicit FigureFont(const std::string& family);
    ~FigureFont();
    FigureFont(const FigureFont&) = delete;
    FigureFont& operator=(const FigureFont&) = delete;
};

/// The families of figure_font() as an SVG or CSS list.
QString font_family_list();

/// UTF-8 made fit to draw: characters for which no installed font has a glyph become "‹U+1234›", so that no figure
/// holds an empty box. Needs a QGuiApplication.
QString printable(const std::string& text);

/// The glyphs of `text` that come from the colour emoji font, whose pictures a PDF file cannot hold as a font; placed
/// relative to the start of the line, whose baseline lies `ascent` below.
std::vector<QGlyphRun> emoji_runs(const QFont& font, const QString& text, double& ascent);

double text_width(const QFont& font, const QString& text);
double text_height(const QFont& font);  ///< ascent + descent

/// Greedy word wrap to `width`; a single word that is wider is broken.
QStringList wrapped(const QFont& font, const QString& text, double width);

}  // namespace headscope::widgets
