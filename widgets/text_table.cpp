// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text_table.h"

#include <algorithm>

#include "widgets/fonts.h"

namespace headscope::widgets {
namespace {

constexpr double kSmallest = 4.0;                   ///< points
constexpr double kNarrowGap = 1.6, kWideGap = 5.0;  ///< mm between columns

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

}  // namespace

double place_text_table(std::vector<PlacedText>& texts, const figures::TextTable& table, double left, double right,
                        double y, double points) {
    if (table.header.empty()) return y;
    const auto gaps = static_cast<double>(table.header.size() - 1);
    QFont head = figure_font(points, true), font = figure_font(points);
    std::vector<double> widths = column_widths(table, head, font);
    while (points > kSmallest && sum(widths) + gaps * units(kNarrowGap) > right - left) {
        points -= 0.25;
        head = figure_font(points, true);
        font = figure_font(points);
        widths = column_widths(table, head, font);
    }
    const double gap =
        gaps > 0 ? std::clamp((right - left - sum(widths)) / gaps, units(kNarrowGap / 2), units(kWideGap)) : 0;
    const double height = text_height(font) * 1.1;
    const auto add_row = [&](const std::vector<std::string>& cells, const QFont& in) {
        double x = left;
        for (std::size_t c = 0; c < std::min(cells.size(), widths.size()); ++c) {
            const auto side = c < table.words ? Qt::AlignLeft : Qt::AlignRight;
            texts.push_back(
                {{x, y, widths[c], height}, printable(cells[c]), in, side | Qt::AlignVCenter, Ink::text, false});
            x += widths[c] + gap;
        }
        y += height;
    };
    add_row(table.header, head);
    for (const auto& row : table.rows) add_row(row, font);
    return y;
}

}  // namespace headscope::widgets
