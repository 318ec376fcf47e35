// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/fonts.h"

#include <QCache>
#include <QFontDatabase>
#include <QFontMetricsF>
#include <QGlyphRun>
#include <QHash>
#include <QStringList>
#include <QTextBoundaryFinder>
#include <QTextLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/figures/token_text.h"

namespace headscope::widgets {
namespace {

const QString kEmoji = "Noto Color Emoji";

const QString kDefault = "Noto Sans";

QString& chosen_family() {
    static QString family = kDefault;
    return family;
}

QStringList families() {
    QStringList list{chosen_family()};
    for (const QString& family : {kDefault, QString("DejaVu Sans"), QString("Noto Sans CJK SC"),
                                  QString("Noto Sans Symbols2"), QString("Noto Sans Symbols"), kEmoji}) {
        if (!list.contains(family)) list += family;
    }
    return list;
}

// A layout asks for the widths of hundreds of labels, several times over, and to shape one takes tens of microseconds.
// One thread draws, and fonts do not change while a program runs. They are not taken down at its end: Qt's engines are
// gone by then.
constexpr int kMostWidths = 20'000;

using Label = std::pair<QFont, QString>;

QCache<Label, double>& known_widths() {
    static auto& known = *new QCache<Label, double>(kMostWidths);
    return known;
}

bool has_glyphs(const QString& character) {
    QTextLayout layout(character, figure_font(8));
    layout.beginLayout();
    layout.createLine();
    layout.endLayout();
    const auto runs = layout.glyphRuns();
    if (runs.isEmpty()) return false;
    return std::all_of(runs.begin(), runs.end(), [](const QGlyphRun& run) {
        const auto indexes = run.glyphIndexes();
        return std::none_of(indexes.begin(), indexes.end(), [](quint32 glyph) { return glyph == 0; });
    });
}

QString code_points(const QString& character) {
    QString text;
    for (const char32_t code : character.toUcs4()) text += QString::fromStdString(figures::code_point_name(code));
    return text;
}

/// Not from memory.
double measured_width(const QFont& font, const QString& text) {
    // Qt's advances of colour glyphs change once they have been drawn: those count as what their font says, 1.245 em.
    constexpr double kEmojiAdvance = 1.245;
    const QFontMetricsF metrics(font);
    double ascent = 0;
    if (emoji_runs(font, text, ascent).empty()) return metrics.horizontalAdvance(text);
    QString plain;
    double width = 0;
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
    qsizetype begin = 0;
    while (finder.toNextBoundary() > 0) {
        const QString character = text.mid(begin, finder.position() - begin);
        begin = finder.position();
        if (emoji_runs(font, character, ascent).empty())
            plain += character;
        else
            width += kEmojiAdvance * font.pixelSize();
    }
    return width + metrics.horizontalAdvance(plain);
}

}  // namespace

QFont figure_font(double points, bool bold) {
    // A copy of a font that was used brings its engine along, a new one has it looked up.
    static auto& known = *new QHash<std::pair<QString, int>, QFont>;  // bold ones have negative sizes
    const int size = std::max(1, static_cast<int>(std::lround(units_of_points(points))));
    const std::pair key{chosen_family(), bold ? -size : size};
    if (const auto place = known.constFind(key); place != known.constEnd()) return *place;
    QFont font;
    font.setFamilies(families());
    font.setPixelSize(size);
    font.setBold(bold);
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setStyleStrategy(static_cast<QFont::StyleStrategy>(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
    known.insert(key, font);
    return font;
}

FigureFont::FigureFont(const std::string& family) {
    const QString name = QString::fromStdString(family);
    if (name == kDefault) return;  // its substitutes serve where it is not installed
    const QStringList installed = QFontDatabase::families();
    const auto found = std::find_if(installed.begin(), installed.end(),
                                    [&](const QString& one) { return one.compare(name, Qt::CaseInsensitive) == 0; });
    if (found == installed.end()) {
        throw Error(ErrorCode::usage, "--font-family", "expected an installed font family, as fc-list : family prints",
                    "found " + escaped(family));
    }
    chosen_family() = *found;
}

FigureFont::~FigureFont() {
    chosen_family() = kDefault;
}

QString font_family_list() {
    // Without the emoji font: pango (rsvg, Inkscape) would take digits from it. Viewers find it for emoji by
    // themselves.
    QStringList list = families();
    list.removeAll(kEmoji);
    return "'" + list.join("', '") + "', sans-serif";
}

QString printable(const std::string& text) {
    const QString all = QString::fromStdString(text);
    if (std::all_of(all.begin(), all.end(), [](QChar c) { return c.unicode() >= 0x20 && c.unicode() < 0x7f; })) {
        return all;
    }
    // One thread draws; fonts do not change while a program runs.
    static QHash<QString, QHash<QString, bool>> known_of_family;
    auto& known = known_of_family[chosen_family()];
    QString shown;
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, all);
    qsizetype begin = 0;
    while (finder.toNextBoundary() > 0) {
        const QString character = all.mid(begin, finder.position() - begin);
        begin = finder.position();
        auto found = known.find(character);
        if (found == known.end()) found = known.insert(character, has_glyphs(character));
        shown += *found ? character : code_points(character);
    }
    return shown;
}

std::vector<QGlyphRun> emoji_runs(const QFont& font, const QString& text, double& ascent) {
    std::vector<QGlyphRun> emoji;
    // Everything below is in the first font or in another outline font; most labels end here.
    if (std::all_of(text.begin(), text.end(), [](QChar c) { return c.unicode() < 0x2000; })) return emoji;
    QTextLayout layout(text, font);
    layout.beginLayout();
    const QTextLine line = layout.createLine();
    layout.endLayout();
    ascent = line.ascent();
    for (const auto& run : layout.glyphRuns()) {
        if (run.rawFont().familyName() == kEmoji) emoji.push_back(run);
    }
    return emoji;
}

double text_width(const QFont& font, const QString& text) {
    const Label label{font, text};
    if (const double* known = known_widths().object(label)) return *known;
    const double width = measured_width(font, text);
    known_widths().insert(label, new double(width));
    return width;
}

double text_height(const QFont& font) {
    const QFontMetricsF metrics(font);
    return metrics.ascent() + metrics.descent();
}

QStringList wrapped(const QFont& font, const QString& text, double width) {
    QStringList lines;
    for (const auto& paragraph : text.split('\n')) {
        QTextLayout layout(paragraph, font);
        QTextOption option;
        option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
        layout.setTextOption(option);
        layout.beginLayout();
        for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
            line.setLineWidth(width);
            lines += paragraph.mid(line.textStart(), line.textLength()).trimmed();
        }
        layout.endLayout();
    }
    return lines;
}

}  // namespace headscope::widgets
