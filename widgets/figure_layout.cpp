// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/figure_layout.h"

#include <algorithm>
#include <cmath>

#include "widgets/axis_layout.h"
#include "widgets/colour_bar.h"
#include "widgets/fonts.h"

namespace headscope::widgets {
namespace {

using namespace figures;

const ColourScale* colours_of(const Panel& panel) {
    if (const auto* map = std::get_if<HeatMap>(&panel.content)) return &map->colours;
    if (const auto* mosaic = std::get_if<Mosaic>(&panel.content)) return &mosaic->colours;
    return nullptr;
}

class LayoutMaker {
public:
    LayoutMaker(const FigureData& figure, const FigureStyle& style)
        : figure_(figure),
          style_(style),
          text_(style.font_points),
          small_(std::max(5.0, style.font_points * 0.875)),
          left_(units(1.2)),
          right_(units(style.width_mm) - units(1.2)) {}

    FigureLayout make() {
        layout_.tick_points = small_;
        double y = units(1.2);
        y = add_title(y);
        y = add_legend(y);
        y = add_grid(y);
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
            layout_.legend.push_back({{x, y + height * 0.3, swatch, height * 0.4}, entry.colour});
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

    /// Right of a ridge panel: width of each column of notes.
    std::vector<double> note_widths(const Ridges& ridges) const {
        const QFont font = figure_font(small_);
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

    PlacedPanel place(std::size_t index, QSizeF plot) const {
        const Panel& panel = figure_.panels[index];
        PlacedPanel placed;
        placed.panel = &panel;
        if (const double label = tile_label_height(panel); label > 0) {
            placed.label_share = label * static_cast<double>(std::get<Mosaic>(panel.content).rows) / plot.height();
        }
        placed.x = place_axis(panel, true, plot.width(), small_, 0, style_.labels);
        placed.y = place_axis(panel, false, plot.height(), small_, placed.label_share, style_.labels);
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
            for (const auto& marker : panel.markers) {
                if (marker.vertical && !marker.label.empty()) {
                    top = std::max(top, (panel.title.empty() ? 0 : title_height(panel)) + text_height(small));
                }
            }
            if (const auto* ridges = std::get_if<Ridges>(&panel.content)) {
                double notes = 0;
                for (const double width : note_widths(*ridges)) notes += width;
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

    double add_grid(double top) {
        if (figure_.panels.empty()) return top;
        const auto [m, plot] = settle();
        const double bar = shared_bar_width(plot);
        double width = m.left + m.inner_left * static_cast<double>(columns_ - 1) +
                       (plot.width() + m.right) * static_cast<double>(columns_);
        for (std::int64_t c = 0; c + 1 < columns_; ++c) width += gap_after(c);
        const double start = left_ + std::max(0.0, (right_ - left_ - bar - width) / 2);

        const QFont head = figure_font(text_, true);
        const double head_height = figure_.column_labels.empty() ? 0 : text_height(head) + units(0.6);
        double y = top + head_height;
        const double grid_top = y + m.top;
        for (std::int64_t r = 0; r < rows_; ++r) {
            const bool last = r + 1 == rows_;
            double x = start;
            for (std::int64_t c = 0; c < columns_; ++c) {
                x += c == 0 ? m.left : m.inner_left;
                const auto index = static_cast<std::size_t>(r * columns_ + c);
                if (r == 0 && !figure_.column_labels.empty()) {
                    const auto& label =
                        figure_.column_labels[static_cast<std::size_t>(c) % figure_.column_labels.size()];
                    const double room = plot.width() + m.right;
                    const QString text = QFontMetricsF(head).elidedText(printable(label), Qt::ElideMiddle, room);
                    add_text({x, top, is_radar() ? plot.width() : room, text_height(head)}, text, head,
                             (is_radar() ? Qt::AlignHCenter : Qt::AlignLeft) | Qt::AlignVCenter);
                }
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
        if (is_radar()) {
            placed.spoke_labels = plot.width() >= units(27);
            if (!placed.spoke_labels) layout_.radar_key = QRectF();
            layout_.panels.push_back(std::move(placed));
            return;
        }
        add_axis_texts(panel, placed, plot);
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
        if (const auto* ridges = std::get_if<Ridges>(&panel.content)) add_ridge_notes(*ridges, placed, plot);
        layout_.panels.push_back(std::move(placed));
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
        const auto widths = note_widths(ridges);
        // Where rows are too low for a line of text, every k-th would mislead: only rows with something to say.
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

    const FigureData& figure_;
    const FigureStyle& style_;
    double text_, small_, left_, right_;
    std::int64_t columns_ = 1, rows_ = 1;
    FigureLayout layout_;
};

}  // namespace

FigureLayout make_layout(const FigureData& figure, const FigureStyle& style) {
    return LayoutMaker(figure, style).make();
}

}  // namespace headscope::widgets
