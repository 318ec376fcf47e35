// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/text_table.h"

#include <QFontMetricsF>
#include <algorithm>
#include <numeric>

#include "widgets/fonts.h"

namespace headscope::widgets {
namespace {

constexpr double kReadable = 5.5, kSmallest = 4.0;                     ///< points
constexpr int kFewLetters = 12;                                        ///< of a column of words that gives way
constexpr double kNarrowGap = 1.6, kWideGap = 5.0, kWidestGap = 30.0;  ///< mm between columns

std::vector<double> column_widths(const figures::TextTable& table, const QFont& head, const QFont& font) {
    std::vector<double> widths;
    for (const auto& cell : table.header) widths.push_back(text_width(head, printable(cell)));
    for (const auto& row : table.rows) {
        for (std::size_t c = 0; c < std::min(row.size(), widths.size()); ++c)
            widths[c] = std::max(widths[c], text_width(font, printable(row[c])));
    }
    return widths;
}

double sum(const std::vector<double>& values) {
    double total = 0;
    for (const double value : values) total += value;
    return total;
}

/// Makes these columns narrower, the widest first, until the sum of all is at most `room`, or they are narrow.
void narrow(std::vector<double>& widths, const std::vector<std::size_t>& columns, double room, double least) {
    while (sum(widths) > room) {
        double* widest = nullptr;
        for (const std::size_t c : columns)
            if (c < widths.size() && (widest == nullptr || widths[c] > *widest)) widest = &widths[c];
        if (widest == nullptr || *widest <= least) return;
        *widest = std::max(least, *widest - (sum(widths) - room));
    }
}

}  // namespace

double place_text_table(std::vector<PlacedText>& texts, const figures::TextTable& table, double left, double right,
                        double y, double points) {
    if (table.header.empty()) return y;
    const auto gaps = static_cast<double>(table.header.size() - 1);
    QFont head = figure_font(points, true), font = figure_font(points);
    std::vector<double> widths = column_widths(table, head, font);
    const double room = right - left - gaps * units(kNarrowGap);
    std::vector<std::size_t> first_words(table.words);
    std::iota(first_words.begin(), first_words.end(), std::size_t{0});
    const auto least = [&] { return kFewLetters * text_width(font, QStringLiteral("n")); };
    while (points > kSmallest && sum(widths) > room) {
        points -= 0.25;
        head = figure_font(points, true);
        font = figure_font(points);
        widths = column_widths(table, head, font);
        // Prefer a name without its middle to one in an unreadable size.
        if (points < kReadable) narrow(widths, first_words, room, least());
    }
    narrow(widths, table.more_words, room, least());  // rather than behind the page's edge
    // As wide as the panels above, unless rows would fall apart.
    const double filling = gaps > 0 ? (right - left - sum(widths)) / gaps : 0;
    const double gap =
        gaps > 0 ? std::max(units(kNarrowGap / 2), filling > units(kWidestGap) ? units(kWideGap) : filling) : 0;
    const double height = text_height(font) * 1.1;
    const auto is_word = [&](std::size_t c) {
        return c < table.words ||
               std::find(table.more_words.begin(), table.more_words.end(), c) != table.more_words.end();
    };
    const auto add_row = [&](const std::vector<std::string>& cells, const QFont& in) {
        double x = left;
        for (std::size_t c = 0; c < std::min(cells.size(), widths.size()); ++c) {
            const auto side = is_word(c) ? Qt::AlignLeft : Qt::AlignRight;
            QString text = printable(cells[c]);
            if (is_word(c) && text_width(in, text) > widths[c])
                text = QFontMetricsF(in).elidedText(text, Qt::ElideMiddle, widths[c]);
            texts.push_back({{x, y, widths[c], height}, text, in, side | Qt::AlignVCenter, Ink::text, false});
            x += widths[c] + gap;
        }
        y += height;
    };
    add_row(table.header, head);
    for (const auto& row : table.rows) add_row(row, font);
    return y;
}

}  // namespace headscope::widgets
