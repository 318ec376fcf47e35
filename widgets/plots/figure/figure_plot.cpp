// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/figure_plot.h"

#include "widgets/fonts.h"
#include "widgets/plots/axis_layout.h"
#include "widgets/plots/chart/line_plottables.h"
#include "widgets/plots/chart/link_lines.h"
#include "widgets/plots/chart/radar_chart.h"
#include "widgets/plots/chart/text_chips.h"
#include "widgets/plots/colour_bar.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/draw_text.h"
#include "widgets/plots/map/cells_plottable.h"

namespace headscope::widgets {
namespace {

using namespace figures;

/// All texts and the legend's swatches.
class TextLayer final : public QCPLayerable {
public:
    TextLayer(QCustomPlot* plot, const FigureLayout& layout, const Theme& theme)
        : QCPLayerable(plot), texts_(layout.texts), legend_(layout.legend), theme_(theme) {}

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
    void draw(QCPPainter* painter) override {
        for (const auto& entry : legend_)
            painter->fillRect(entry.swatch, member_colour(theme_, entry.colour, entry.shade));
        for (const auto& text : texts_) {
            const QColor colour = text.ink == Ink::accent  ? theme_.accent
                                  : text.ink == Ink::muted ? theme_.muted
                                                           : theme_.text;
            draw_text(painter, text.rect, text.text, text.font, colour, text.alignment, text.turned);
        }
    }

private:
    std::vector<PlacedText> texts_;
    std::vector<PlacedLegendEntry> legend_;
    Theme theme_;
};

/// Drawn by toPainter() alone. Suppresses the replot that QCustomPlot does for itself soon after construction: it would
/// never be shown and costs as much.
class Paper final : public QCustomPlot {
public:
    Paper() { mReplotting = true; }
};

class PlotMaker {
public:
    PlotMaker(const FigureLayout& layout, const Theme& theme)
        : layout_(layout), theme_(theme), plot_(std::make_unique<Paper>()) {}

    std::unique_ptr<QCustomPlot> make() {
        plot_->setAntialiasedElements(QCP::aeAll);
        plot_->setBackground(theme_.background);
        plot_->plotLayout()->clear();
        inset_ = new QCPLayoutInset;
        plot_->plotLayout()->addElement(0, 0, inset_);
        for (const auto& panel : layout_.panels) add_panel(panel);
        if (layout_.shared_bar) add_bar(*layout_.shared_bar, *layout_.panels.front().panel);
        if (layout_.radar_key) {
            const auto& radar = std::get<Radar>(layout_.panels.front().panel->content);
            new RadarChart(plot_.get(), *layout_.radar_key, radar, theme_, RadarChart::Labels::key,
                           layout_.tick_points);
        }
        new TextLayer(plot_.get(), layout_, theme_);
        return std::move(plot_);
    }

private:
    // Everything that is made with new here belongs to plot_.

    void add_bar(const QRectF& area, const Panel& panel) {
        if (const auto* scale = colours_of(panel))
            new ColourBar(plot_.get(), area, *scale, theme_, layout_.tick_points);
    }

    void add_panel(const PlacedPanel& placed) {
        if (const auto* radar = std::get_if<Radar>(&placed.panel->content)) {
            new RadarChart(plot_.get(), placed.plot, *radar, theme_,
                           placed.spoke_labels ? RadarChart::Labels::spokes : RadarChart::Labels::none,
                           layout_.tick_points);
            return;
        }
        if (const auto* text = std::get_if<TextBlock>(&placed.panel->content)) {
            new TextChips(plot_.get(), placed.chips, text->colours, theme_, layout_.text_points);
            return;
        }
        if (const auto* links = std::get_if<Links>(&placed.panel->content)) {
            new LinkLines(plot_.get(), placed.plot, *links, theme_);
            return;
        }
        auto* box = add_axis_rect(placed.plot);
        QCPAxis* x = box->axis(QCPAxis::atBottom);
        QCPAxis* y = box->axis(QCPAxis::atLeft);
        set_axis(x, placed.x);
        set_axis(y, placed.y);
        if (const auto* map = std::get_if<HeatMap>(&placed.panel->content)) {
            new CellsPlottable(x, y, theme_, *map, layout_.tick_points);
            for (auto* axis : box->axes()) axis->setBasePen(Qt::NoPen);
        } else if (const auto* mosaic = std::get_if<Mosaic>(&placed.panel->content)) {
            new MosaicPlottable(x, y, theme_, *mosaic, placed.label_share, layout_.tick_points);
            for (auto* axis : box->axes()) {
                axis->setBasePen(Qt::NoPen);
                axis->setTickPen(Qt::NoPen);
            }
        } else if (const auto* ridges = std::get_if<Ridges>(&placed.panel->content)) {
            y->setBasePen(Qt::NoPen);
            y->setTickPen(Qt::NoPen);
            box->axis(QCPAxis::atTop)->setVisible(false);
            box->axis(QCPAxis::atRight)->setVisible(false);
            x->grid()->setVisible(true);
            x->grid()->setPen(QPen(theme_.grid, 1.2));
            x->grid()->setZeroLinePen(Qt::NoPen);
            new RidgesPlottable(x, y, theme_, *ridges, placed.panel->x);
        } else if (const auto* curves = std::get_if<Curves>(&placed.panel->content)) {
            for (auto* axis : {x, y}) {
                axis->grid()->setVisible(true);
                axis->grid()->setPen(QPen(theme_.grid, 1.2));
                axis->grid()->setZeroLinePen(Qt::NoPen);
            }
            new CurvesPlottable(x, y, theme_, *curves, *placed.panel, layout_.tick_points);
        }
        add_markers(placed, x, y);
        if (placed.colour_bar) add_bar(*placed.colour_bar, *placed.panel);
    }

    void add_markers(const PlacedPanel& placed, QCPAxis* x, QCPAxis* y) {
        std::vector<MarkersPlottable::Line> lines;
        for (const auto& marker : placed.panel->markers) {
            const double place = marker.vertical ? placed.x.place(placed.panel->x, marker.position)
                                                 : placed.y.place(placed.panel->y, marker.position);
            lines.push_back({marker.vertical, place, marker.vertical ? QString() : printable(marker.label)});
        }
        if (!lines.empty()) new MarkersPlottable(x, y, theme_, std::move(lines), layout_.tick_points);
    }

    QCPAxisRect* add_axis_rect(const QRectF& area) {
        auto* box = new QCPAxisRect(plot_.get(), true);
        box->setAutoMargins(QCP::msNone);
        box->setMargins({});
        box->setMinimumSize(1, 1);
        const double width = layout_.size.width(), height = layout_.size.height();
        // The inset layout cuts fractions of its size to whole units: a quarter keeps them from falling short.
        inset_->addElement(box, QRectF((area.x() + 0.25) / width, (area.y() + 0.25) / height,
                                       (area.width() + 0.25) / width, (area.height() + 0.25) / height));
        for (auto* axis : box->axes()) {
            axis->setBasePen(QPen(theme_.line, 1.8));
            axis->setTickPen(QPen(theme_.line, 1.8));
            axis->setTicks(false);
            axis->setTickLabels(false);
            axis->setSubTicks(false);
            axis->grid()->setVisible(false);
            axis->setVisible(true);
        }
        return box;
    }

    void set_axis(QCPAxis* axis, const PlacedAxis& placed) {
        axis->setRange(std::min(placed.low, placed.high), std::max(placed.low, placed.high));
        axis->setRangeReversed(placed.low > placed.high);
        if (placed.tokens || placed.ticks.empty()) return;
        const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
        for (const auto& [at, label] : placed.ticks) ticker->addTick(at, label);
        ticker->setSubTickCount(0);
        axis->setTicker(ticker);
        axis->setTicks(true);
        axis->setTickLabels(placed.labels);
        axis->setTickLabelFont(figure_font(layout_.tick_points));
        axis->setTickLabelColor(theme_.text);
        axis->setTickLength(0, placed.labels ? static_cast<int>(kTickLength) : 4);
        axis->setTickLabelPadding(static_cast<int>(kTickPadding));
        axis->setNumberFormat("g");
    }

    const FigureLayout& layout_;
    const Theme& theme_;
    std::unique_ptr<QCustomPlot> plot_;
    QCPLayoutInset* inset_ = nullptr;
};

}  // namespace

std::unique_ptr<QCustomPlot> make_plot(const FigureLayout& layout, const Theme& theme) {
    return PlotMaker(layout, theme).make();
}

}  // namespace headscope::widgets
