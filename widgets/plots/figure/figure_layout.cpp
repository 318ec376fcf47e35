// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/figure_layout.h"

#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/axis_layout.h"
#include "widgets/plots/chart/link_lines.h"
#include "widgets/plots/chart/text_table.h"
#include "widgets/plots/colour_bar.h"
#include "widgets/plots/figure/panel_texts.h"

namespace headscope::widgets {
namespace {

using namespace figures;

class LayoutMaker {
public:
    LayoutMaker(const FigureData& figure, const FigureStyle& style)
        : figure_(figure),
          style_(style),
          text_(style.font_points),
          small_(std::max(5.0, style.font_points * 0.875)),
          left_(units(1.2)),
          right_(units(style.width_mm) - units(1.2)) {
        for (const Panel& panel : figure_.panels)
            limits_.emplace_back(axis_limits(panel, true), axis_limits(panel, false));
    }

    FigureLayout make() {
        layout_.tick_points = small_;
        layout_.text_points = text_;
        double y = units(1.2);
        y = add_title(y);
        y = add_legend(y);
        y = add_grid(y);
        if (figure_.text_table)
            y = place_text_table(layout_.texts, *figure_.text_table, left_, right_, y + units(2.0), text_);
        y = add_notes(y);
        layout_.size = QSizeF(std::round(units(style_.width_mm)), std::ceil(y + units(1.2)));
        return std::move(layout_);
    }

private:
    void add_text(QRectF rect, const QString& text, const QFont& font, Qt::Alignment alignment, Ink ink = Ink::text,
                  bool turned = false) {
        layout_.texts.push_back({rect, text, font, alignment, ink, turned});
    }

    double add_lines(double y, const QString& text, const QFont& font, double left, Ink ink) {
        for (const auto& line : wrapped(font, text, right_ - left)) {
            add_text({left, y, right_ - left, text_height(font)}, line, font, Qt::AlignLeft | Qt::AlignVCenter, ink);
            y += text_height(font) * 0.97;
        }
        return y;
    }

    double add_title(double y) {
        const std::string& title = style_.title_text.empty() ? figure_.title : style_.title_text;
        if (!style_.title || title.empty()) return y;
        return add_lines(y, printable(title), figure_font(text_ + 0.5, true), left_, Ink::text) + units(1.0);
    }

    double add_legend(double y) {
        if (figure_.legend.empty()) return y;
        const QFont font = figure_font(text_);
        const double swatch = text_height(font) * 0.95, height = text_height(font);
        double x = left_;
        for (const auto& entry : figure_.legend) {
            const QString name =
                QFontMetricsF(font).elidedText(printable(entry.name), Qt::ElideMiddle, right_ - left_ - swatch - 8);
            const double width = swatch + 8 + text_width(font, name);
            if (x > left_ && x + width > right_) {
                x = left_;
                y += height * 1.1;
            }
            layout_.legend.push_back({{x, y + height * 0.3, swatch, height * 0.4}, entry.colour, entry.shade});
            add_text({x + swatch + 8, y, width - swatch - 8, height}, name, font, Qt::AlignLeft | Qt::AlignVCenter);
            x += width + units(4);
        }
        return y + height + units(1.5);
    }

    double add_notes(double y) {
        const QFont font = figure_font(std::max(5.0, style_.font_points * 0.8));
        double left = left_;
        const double top = y + units(1.0);
        if (layout_.radar_key) {
            layout_.radar_key = QRectF(left_, top, units(24), units(22));
            left += units(27);
        }
        y = top;
        for (const auto& note : figure_.notes) y = add_lines(y, printable(note), font, left, Ink::muted);
        return layout_.radar_key ? std::max(y, top + units(22)) : y;
    }

    // ---- the grid of panels

    struct Margins {
        double left = 0, inner_left = 0, right = 0, top = 0, bottom = 0, inner_bottom = 0;
    };

    bool is_radar() const { return std::holds_alternative<Radar>(figure_.panels.front().content); }

    bool is_mosaic() const { return std::holds_alternative<Mosaic>(figure_.panels.front().content); }

    PlacedPanel place(std::size_t index, QSizeF plot) const {
        const Panel& panel = figure_.panels[index];
        PlacedPanel placed;
        placed.panel = &panel;
        if (const double label = tile_label_height(panel); label > 0) {
            placed.label_share = label * static_cast<double>(std::get<Mosaic>(panel.content).rows) / plot.height();
        }
        const auto& [x, y] = limits_[index];
        placed.x = place_axis(panel, x, true, plot.width(), small_, 0, style_.labels);
        placed.y = place_axis(panel, y, false, plot.height(), small_, placed.label_share, style_.labels);
        const auto at = static_cast<std::int64_t>(index);
        placed.y.labels = !figure_.share_y || at % columns_ == 0;
        placed.x.labels = !figure_.share_x || at + columns_ >= std::ssize(figure_.panels);
        return placed;
    }

    /// Room above each tile of a mosaic whose tiles carry labels.
    double tile_label_height(const Panel& panel) const {
        const auto* mosaic = std::get_if<Mosaic>(&panel.content);
        return mosaic == nullptr || mosaic->tile_labels.empty() ? 0 : text_height(figure_font(small_));
    }

    Margins margins(QSizeF plot) const {
        Margins m;
        const QFont small = figure_font(small_);
        for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
            const Panel& panel = figure_.panels[i];
            const PlacedPanel placed = place(i, plot);
            const auto out = is_radar() ? std::pair{0.0, 0.0} : overhang(placed.x, plot.width(), small_);
            const double y_margin = axis_margin(placed.y, panel.y, false, small_);
            (placed.y.labels ? m.left : m.inner_left) =
                std::max({placed.y.labels ? m.left : m.inner_left, y_margin, out.first});
            m.inner_left = std::max(m.inner_left, out.first);
            (placed.x.labels ? m.bottom : m.inner_bottom) =
                std::max(placed.x.labels ? m.bottom : m.inner_bottom, axis_margin(placed.x, panel.x, true, small_));
            double right = out.second;
            if (const auto* scale = colours_of(panel); scale != nullptr && !figure_.shared_colours) {
                right = std::max(right, units(1.2) + bar_width(*scale, bar_length(plot), small_));
            }
            double top = panel.title.empty() ? 0 : title_height(panel);
            if (const auto* links = std::get_if<Links>(&panel.content)) {
                const LinkTokens tokens(*links, small_, style_.labels);
                m.left = std::max(m.left, tokens.left_width);
                right = std::max(right, tokens.right_width);
                top += text_height(small);
            }
            for (const auto& marker : panel.markers) {
                if (marker.vertical && !marker.label.empty()) {
                    top = std::max(top, (panel.title.empty() ? 0 : title_height(panel)) + text_height(small));
                }
            }
            if (const auto* ridges = std::get_if<Ridges>(&panel.content)) {
                double notes = 0;
                for (const double width : note_widths(*ridges, small_)) notes += width;
                right = std::max(right, notes);
                if (!ridges->note_titles.empty())
                    top = std::max(top, (panel.title.empty() ? 0 : title_height(panel)) + text_height(small));
            }
            m.right = std::max(m.right, right);
            m.top = std::max(m.top, top);
        }
        if (!figure_.share_y) m.inner_left = m.left;
        if (!figure_.share_x) m.inner_bottom = m.bottom;
        return m;
    }

    /// The label at a colour bar's top end stands half above the plot.
    double title_height(const Panel& panel) const {
        const bool bar = colours_of(panel) != nullptr && !figure_.shared_colours;
        return text_height(figure_font(text_)) + (bar ? 13 : 3);
    }

    static double bar_length(QSizeF plot) { return std::min(plot.height(), std::max(units(14), units(60))); }

    double gap_after(std::int64_t column) const {
        double gap = units(is_radar() ? 1.0 : 2.6);
        if (figure_.block_columns > 0 && (column + 1) % figure_.block_columns == 0) gap += units(3.5);
        return gap;
    }

    double plot_width(const Margins& m, double shared_bar) const {
        double width = right_ - left_ - shared_bar - m.left - m.inner_left * static_cast<double>(columns_ - 1) -
                       m.right * static_cast<double>(columns_);
        for (std::int64_t c = 0; c + 1 < columns_; ++c) width -= gap_after(c);
        return width / static_cast<double>(columns_);
    }

    QSizeF plot_size(const Margins& m, double shared_bar) const {
        double width = std::max(units(4), plot_width(m, shared_bar));
        if (figure_.widest_mm > 0) width = std::min(width, units(figure_.widest_mm));
        double height = figure_.panel_height_mm > 0 ? units(figure_.panel_height_mm) : width * figure_.panel_aspect;
        if (std::holds_alternative<TextBlock>(figure_.panels.front().content)) return {width, text_height_of(width)};
        if (std::holds_alternative<Links>(figure_.panels.front().content)) height = link_height();
        if (const double label = tile_label_height(figure_.panels.front()); label > 0) {
            height += label * static_cast<double>(std::get<Mosaic>(figure_.panels.front().content).rows);
        }
        if (style_.height_mm > 0) {
            const auto rows = static_cast<double>(rows_);
            const double rest = units(style_.height_mm) - units(20) - rows * (m.top + m.bottom);
            height = std::max(units(6), rest / rows);
            if (is_radar()) width = height = std::min(width, height);
            if (is_mosaic()) {
                // Square cells: what the labels of the tiles do not take is shared in the figure's own proportions.
                const double labels = tile_label_height(figure_.panels.front()) *
                                      static_cast<double>(std::get<Mosaic>(figure_.panels.front().content).rows);
                width = std::max(units(4), std::min(width, (height - labels) / figure_.panel_aspect));
                height = width * figure_.panel_aspect + labels;
            }
        }
        return {width, height};
    }

    /// Room for the longest text of the figure. A unit is spared, for panels are placed on whole ones.
    double text_height_of(double width) const {
        double most = 0;
        for (const auto& panel : figure_.panels) {
            const auto chips = place_chips(std::get<TextBlock>(panel.content), figure_font(text_), chip_width(width));
            if (!chips.empty()) most = std::max(most, chips.back().rect.bottom());
        }
        return most + 2;
    }

    static double chip_width(double width) { return std::floor(width) - 2; }

    double link_height() const {
        std::size_t rows = 1;
        for (const auto& panel : figure_.panels) {
            const auto& links = std::get<Links>(panel.content);
            rows = std::max({rows, links.left.size(), links.right.size()});
        }
        return static_cast<double>(rows) * text_height(figure_font(small_)) * 1.04;
    }

    double shared_bar_width(QSizeF plot) const {
        const auto* scale = colours_of(figure_.panels.front());
        if (scale == nullptr || !figure_.shared_colours) return 0;
        return units(2.5) + bar_width(*scale, shared_bar_length(plot.height() * static_cast<double>(rows_)), small_);
    }

    /// Beside a low plot the bar stays long enough for its turned label; the page grows with it.
    double shared_bar_length(double height) const {
        const auto* scale = colours_of(figure_.panels.front());
        const double label = text_width(figure_font(small_), printable(scale->label)) + units(1.0);
        return std::max({bar_length({0, height}), std::min(units(60), label), units(12)});
    }

    /// Columns, then sizes: margins depend on which ticks fit, ticks on sizes. Three rounds settle it.
    std::pair<Margins, QSizeF> settle() {
        const std::int64_t step = std::max<std::int64_t>(1, figure_.block_columns);
        columns_ = std::max<std::int64_t>(1, figure_.columns);
        for (;;) {
            rows_ = (std::ssize(figure_.panels) + columns_ - 1) / columns_;
            QSizeF plot(units(style_.width_mm) / static_cast<double>(columns_), 0);
            plot.setHeight(figure_.panel_height_mm > 0 ? units(figure_.panel_height_mm)
                                                       : plot.width() * figure_.panel_aspect);
            Margins m;
            for (int round = 0; round < 3; ++round) {
                m = margins(plot);
                plot = plot_size(m, shared_bar_width(plot));
            }
            if (!figure_.reflow || columns_ <= step ||
                plot_width(m, shared_bar_width(plot)) >= units(figure_.narrowest_mm)) {
                return {m, plot};
            }
            columns_ -= step;
        }
    }

    /// Lines of each column's heading: broken at the last space if wider than the column, else cut.
    std::vector<std::vector<QString>> column_heads(const QFont& font, double room) const {
        const QFontMetricsF metrics(font);
        std::vector<std::vector<QString>> heads;
        for (const std::string& label : figure_.column_labels) {
            const QString text = printable(label);
            const auto space = text.lastIndexOf(QLatin1Char(' '));
            const bool broken = space > 0 && metrics.horizontalAdvance(text) > room;
            heads.push_back(broken ? std::vector{text.left(space), text.mid(space + 1)} : std::vector{text});
            for (QString& line : heads.back()) line = metrics.elidedText(line, Qt::ElideMiddle, room);
        }
        return heads;
    }

    double add_grid(double top) {
        if (figure_.panels.empty()) return top;
        const auto [m, plot] = settle();
        const double bar = shared_bar_width(plot);
        double width = m.left + m.inner_left * static_cast<double>(columns_ - 1) +
                       (plot.width() + m.right) * static_cast<double>(columns_);
        for (std::int64_t c = 0; c + 1 < columns_; ++c) width += gap_after(c);
        const double start = left_ + std::max(0.0, (right_ - left_ - bar - width) / 2);

        const QFont head = figure_font(text_, true);
        const auto heads = column_heads(head, plot.width() + m.right);
        const double line = text_height(head);
        std::size_t most = 0;
        for (const auto& lines : heads) most = std::max(most, lines.size());
        double y = top + (heads.empty() ? 0 : line * static_cast<double>(most) + units(0.6));
        const double grid_top = y + m.top;
        for (std::int64_t r = 0; r < rows_; ++r) {
            const bool last = r + 1 == rows_;
            double x = start;
            for (std::int64_t c = 0; c < columns_; ++c) {
                x += c == 0 ? m.left : m.inner_left;
                const auto index = static_cast<std::size_t>(r * columns_ + c);
                if (r == 0 && !heads.empty()) {
                    const auto& lines = heads[static_cast<std::size_t>(c) % heads.size()];
                    for (std::size_t i = 0; i < lines.size(); ++i)  // the last lines side by side
                        add_text({x, top + line * static_cast<double>(most - lines.size() + i),
                                  plot.width() + (is_radar() ? 0 : m.right), line},
                                 lines[i], head, (is_radar() ? Qt::AlignHCenter : Qt::AlignLeft) | Qt::AlignVCenter);
                }
                text_room_ = chip_width(plot.width());
                if (index < figure_.panels.size())
                    add_panel(index, QRectF(QRectF(QPointF(x, y + m.top), plot).toRect()), m);
                x += plot.width() + m.right + gap_after(c);
            }
            // A panel with nothing below it keeps its labels, so a short last row needs room above it too.
            const bool ragged = r + 2 == rows_ && std::ssize(figure_.panels) % columns_ != 0;
            y += m.top + plot.height() + (last || ragged ? m.bottom : m.inner_bottom) + (last ? 0 : units(2.0));
        }
        if (bar > 0) {
            const double bottom = y - m.bottom;
            const double length = shared_bar_length(bottom - grid_top);
            layout_.shared_bar =
                QRectF(std::min(right_, start + width + bar) - bar + units(2.5), grid_top, bar - units(2.5), length);
            y = std::max(y, grid_top + length + text_height(figure_font(small_)) / 2);
        }
        return y;
    }

    void add_panel(std::size_t index, const QRectF& plot, const Margins& m) {
        const Panel& panel = figure_.panels[index];
        PlacedPanel placed = place(index, plot.size());
        placed.plot = plot;
        const QFont title = figure_font(text_), small = figure_font(small_);
        const double height = text_height(small);
        if (!panel.title.empty()) {
            const QString text =
                QFontMetricsF(title).elidedText(printable(panel.title), Qt::ElideMiddle, plot.width() + m.right);
            add_text({plot.left(), plot.top() - m.top, is_radar() ? plot.width() : plot.width() + m.right,
                      text_height(title)},
                     text, title, (is_radar() ? Qt::AlignHCenter : Qt::AlignLeft) | Qt::AlignVCenter);
        }
        if (std::holds_alternative<Radar>(panel.content)) {
            placed.spoke_labels = plot.width() >= units(27);
            if (!placed.spoke_labels) layout_.radar_key = QRectF();
            layout_.panels.push_back(std::move(placed));
            return;
        }
        if (const auto* text_block = std::get_if<TextBlock>(&panel.content)) {
            placed.chips = place_chips(*text_block, figure_font(text_), text_room_);
            for (auto& chip : placed.chips) chip.rect.translate(plot.topLeft());
            layout_.panels.push_back(std::move(placed));
            return;
        }
        add_panel_texts(layout_.texts, placed, small_, left_, style_.labels);
        if (const auto* scale = colours_of(panel); scale != nullptr && !figure_.shared_colours) {
            const double length = bar_length(plot.size());
            placed.colour_bar =
                QRectF(plot.right() + units(1.2), plot.top(), bar_width(*scale, length, small_), length);
        }
        for (const auto& marker : panel.markers) {
            if (!marker.vertical || marker.label.empty()) continue;
            const QString text = printable(marker.label);
            const double at = (placed.x.place(panel.x, marker.position) - placed.x.low) /
                              (placed.x.high - placed.x.low) * plot.width();
            const double wide = text_width(small, text);
            const double x =
                std::clamp(plot.left() + at - wide / 2, plot.left(), std::max(plot.left(), plot.right() - wide));
            add_text({x, plot.top() - height - 1, wide, height}, text, small, Qt::AlignLeft | Qt::AlignVCenter,
                     Ink::accent);
        }
        layout_.panels.push_back(std::move(placed));
    }

    const FigureData& figure_;
    const FigureStyle& style_;
    double text_, small_, left_, right_, text_room_ = 0;
    std::int64_t columns_ = 1, rows_ = 1;
    std::vector<std::pair<AxisLimits, AxisLimits>> limits_;  ///< of each panel
    FigureLayout layout_;
};

}  // namespace

const ColourScale* colours_of(const Panel& panel) {
    if (const auto* map = std::get_if<HeatMap>(&panel.content)) return &map->colours;
    if (const auto* mosaic = std::get_if<Mosaic>(&panel.content)) return &mosaic->colours;
    if (const auto* text = std::get_if<TextBlock>(&panel.content)) return &text->colours;
    return nullptr;
}

FigureLayout make_layout(const FigureData& figure, const FigureStyle& style) {
    return LayoutMaker(figure, style).make();
}

}  // namespace headscope::widgets
