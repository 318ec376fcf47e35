// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/panel_texts.h"

#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/axis_layout.h"
#include "widgets/plots/chart/link_lines.h"

namespace headscope::widgets {

using namespace figures;

namespace {

/// Adds texts around one panel.
class Writer {
public:
    Writer(std::vector<PlacedText>& texts, double points, double left) : texts_(texts), small_(points), left_(left) {}

    void add_link_tokens(const Links& links, const QRectF& plot, bool token_labels) {
        const LinkTokens tokens(links, small_, token_labels);
        const auto rows = static_cast<double>(std::max({links.left.size(), links.right.size(), std::size_t{1}}));
        const double row = plot.height() / rows;
        // With a given height rows may be lower than a line of text.
        const double points = std::clamp(row / units_of_points(1.0) / 1.36, 1.0, small_);
        const QFont font = figure_font(points), small = figure_font(small_);
        for (const bool left : {true, false}) {
            const auto& column = left ? tokens.left : tokens.right;
            const double room = left ? tokens.left_width : tokens.right_width;
            const double x = left ? plot.left() - room : plot.right();
            const auto side = (left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter;
            const QRectF line(x + (left ? 0 : kTickPadding), plot.top(), room - kTickPadding, row);
            for (qsizetype i = 0; i < column.size(); ++i)
                add_text(line.translated(0, row * static_cast<double>(i)), column[i], font, side);
            const QString name = printable(left ? links.left_label : links.right_label);
            const double height = text_height(small);
            add_text({line.left(), plot.top() - height, line.width(), height}, name, small, side, Ink::muted);
        }
    }

    void add_axis_texts(const Panel& panel, const PlacedPanel& placed, const QRectF& plot) {
        const QFont small = figure_font(small_);
        const double height = text_height(small);
        if (placed.y.labels && !panel.y.label.empty()) {
            const double width = axis_margin(placed.y, panel.y, false, small_);
            add_text({plot.left() - width, plot.top(), height, plot.height()}, printable(panel.y.label), small,
                     Qt::AlignCenter, Ink::text, true);
        }
        if (placed.x.labels && !panel.x.label.empty()) {
            const double below = axis_margin(placed.x, panel.x, true, small_);
            add_text({plot.left(), plot.bottom() + below - height, plot.width(), height}, printable(panel.x.label),
                     small, Qt::AlignCenter);
        }
        if (placed.y.tokens && placed.y.labels) {
            const QFont font = figure_font(placed.y.token_points);
            for (const auto& [at, label] : placed.y.ticks) {
                const double y = plot.top() + (at - placed.y.high) / (placed.y.low - placed.y.high) * plot.height();
                const double size = text_height(font);
                add_text({left_, y - size / 2, plot.left() - kTickPadding - left_, size}, label, font,
                         Qt::AlignRight | Qt::AlignVCenter);
            }
        }
        if (placed.x.tokens && placed.x.labels) {
            const QFont font = figure_font(placed.x.token_points);
            for (const auto& [at, label] : placed.x.ticks) {
                const double x = plot.left() + (at - placed.x.low) / (placed.x.high - placed.x.low) * plot.width();
                const double size = text_height(font), length = text_width(font, label);
                add_text({x - size / 2, plot.bottom() + kTickPadding, size, length}, label, font,
                         Qt::AlignRight | Qt::AlignVCenter, Ink::text, true);
            }
        }
    }

    void add_ridge_notes(const Ridges& ridges, const PlacedPanel& placed, const QRectF& plot) {
        if (ridges.note_titles.empty()) return;
        const double row = plot.height() / std::abs(placed.y.high - placed.y.low);
        const double points = std::min(small_, row * 0.8 / units_of_points(1.0));
        const QFont small = figure_font(small_), font = figure_font(std::max(kSmallestToken, points));
        const auto widths = note_widths(ridges, small_);
        // In rows that are too low for text, labeling every k-th would mislead: label only notable rows.
        const bool only_strong = points < kSmallestToken;
        double x = plot.right();
        for (std::size_t n = 0; n < widths.size(); ++n) {
            const auto line = [&](double y, const QString& text, const QFont& f, Ink ink) {
                add_text({x, y - text_height(f) / 2, widths[n], text_height(f)}, text, f,
                         Qt::AlignRight | Qt::AlignVCenter, ink);
            };
            // Above the plot (margins() keeps the room), so that it cannot meet the first row's.
            line(plot.top() - text_height(small) / 2, printable(ridges.note_titles[n]), small, Ink::muted);
            for (std::size_t i = 0; i < ridges.ridges.size(); ++i) {
                const auto& ridge = ridges.ridges[i];
                const bool strong = n < ridge.strong.size() && ridge.strong[n];
                if (n >= ridge.notes.size() || (only_strong && !strong)) continue;
                const double baseline = plot.top() + (static_cast<double>(i) - placed.y.high) * row;
                line(baseline - std::min(row * 0.3, text_height(font) * 0.3), printable(ridge.notes[n]), font,
                     strong ? Ink::accent : Ink::muted);
            }
            x += widths[n];
        }
    }

private:
    void add_text(QRectF rect, const QString& text, const QFont& font, Qt::Alignment alignment, Ink ink = Ink::text,
                  bool turned = false) {
        texts_.push_back({rect, text, font, alignment, ink, turned});
    }

    std::vector<PlacedText>& texts_;
    double small_, left_;
};

}  // namespace

std::vector<double> note_widths(const Ridges& ridges, double points) {
    const QFont font = figure_font(points);
    std::vector<double> widths;
    for (std::size_t i = 0; i < ridges.note_titles.size(); ++i) {
        double widest = text_width(font, printable(ridges.note_titles[i]));
        for (const auto& ridge : ridges.ridges) {
            if (i < ridge.notes.size()) widest = std::max(widest, text_width(font, printable(ridge.notes[i])));
        }
        widths.push_back(widest + units(2.0));
    }
    return widths;
}

void add_panel_texts(std::vector<PlacedText>& texts, const PlacedPanel& placed, double points, double page_left,
                     bool token_labels) {
    Writer writer(texts, points, page_left);
    const Panel& panel = *placed.panel;
    if (const auto* links = std::get_if<Links>(&panel.content))
        writer.add_link_tokens(*links, placed.plot, token_labels);
    writer.add_axis_texts(panel, placed, placed.plot);
    if (const auto* ridges = std::get_if<Ridges>(&panel.content)) writer.add_ridge_notes(*ridges, placed, placed.plot);
}

}  // namespace headscope::widgets
