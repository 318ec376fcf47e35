// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/map_profiles.h"

#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/colour_bar.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/map/cells_plottable.h"

namespace headscope::widgets {
namespace {

constexpr int kHeight = 72, kGap = 8, kAside = 24, kTickPoints = 7;
constexpr double kUnitsPerPixel = kUnitsPerInch / 96.0;
const QString kLayer = QStringLiteral("profiles");

}  // namespace

/// One curve: what lies under each pixel of the map's axis, from nothing to its value.
class MapProfiles::Plottable final : public FigurePlottable {
public:
    Plottable(MapProfiles* profiles, QCPAxis* cells, QCPAxis* values, const Curve& curve)
        : FigurePlottable(cells, values, profiles->theme_), profiles_(profiles), curve_(curve) {}

protected:
    void draw(QCPPainter* painter) override {
        const QRectF inside = area();
        const bool across = mKeyAxis->orientation() == Qt::Horizontal;
        const Theme& theme = profiles_->theme_;
        painter->setRenderHint(QPainter::Antialiasing, false);
        QColor colour = theme.categorical(0);
        const int begin = static_cast<int>(across ? inside.left() : inside.top());
        const int end = static_cast<int>(across ? inside.right() : inside.bottom());
        const double zero = place(0.0);
        for (int pixel = begin; pixel <= end; ++pixel) {
            const float value = under(pixel);
            if (std::isnan(value)) continue;
            const double to = place(static_cast<double>(value));
            const double low = std::min(zero, to), size = std::max(1.0, std::abs(to - zero));
            painter->fillRect(across ? QRectF(pixel, low, 1, size) : QRectF(low, pixel, size, 1), colour);
        }
        painter->setPen(QPen(theme.muted));
        QFont font = painter->font();
        font.setPixelSize(11);
        painter->setFont(font);
        if (across) {
            painter->drawText(inside.adjusted(4, 1, -4, -1), Qt::AlignRight | Qt::AlignTop, curve_.title);
        } else {
            painter->save();
            painter->translate(inside.right(), inside.top());
            painter->rotate(90);
            painter->drawText(QRectF(4, 1, inside.height() - 8, inside.width()), Qt::AlignRight | Qt::AlignTop,
                              curve_.title);
            painter->restore();
        }
    }

private:
    double place(double value) const {
        const double at = fraction(profiles_->scale_, value);
        return mValueAxis->coordToPixel(at);
    }

    /// The value of greatest magnitude of the cells that the pixel covers.
    float under(int pixel) const {
        const auto size = std::ssize(curve_.values);
        auto first = static_cast<std::int64_t>(std::floor(mKeyAxis->pixelToCoord(pixel)));
        const double end = mKeyAxis->pixelToCoord(pixel + 1);
        const auto last = std::max<std::int64_t>(first + 1, static_cast<std::int64_t>(std::ceil(end - 1e-9)));
        float most = std::numeric_limits<float>::quiet_NaN();
        for (first = std::max<std::int64_t>(0, first); first < std::min(last, size); ++first) {
            const float value = curve_.values[static_cast<std::size_t>(first)];
            if (!(std::abs(value) <= std::abs(most))) most = std::isnan(value) ? most : value;
        }
        return most;
    }

    MapProfiles* profiles_;
    const Curve& curve_;
};

MapProfiles::MapProfiles(MapPlot* plot)
    : QObject(plot),
      plot_(plot),
      margins_(new QCPMarginGroup(plot)),
      plain_(plot->area()->minimumMargins()),
      theme_(make_theme(false)) {
    plot_->addLayer(kLayer, plot_->layer(QStringLiteral("axes")), QCustomPlot::limAbove);
    plot_->layer(kLayer)->setMode(QCPLayer::lmBuffered);
}

QCPAxisRect* MapProfiles::make_rect(bool above) {
    auto* rect = new QCPAxisRect(plot_);
    QCPAxis* cells = rect->axis(above ? QCPAxis::atBottom : QCPAxis::atLeft);
    QCPAxis* values = rect->axis(above ? QCPAxis::atLeft : QCPAxis::atBottom);
    QCPAxis* of_map = above ? plot_->xAxis : plot_->yAxis;
    cells->setRange(of_map->range());
    cells->setRangeReversed(of_map->rangeReversed());
    connect(of_map, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), cells,
            qOverload<const QCPRange&>(&QCPAxis::setRange));
    rect->setRangeDrag({});
    rect->setRangeZoom({});
    rect->setMinimumMargins({0, 0, 0, 0});
    for (QCPAxis* axis : rect->axes()) {
        axis->setVisible(true);
        axis->grid()->setVisible(false);
        axis->setSubTicks(false);
        if (axis != values) {
            axis->setTicks(false);
            axis->setTickLabels(false);
        }
    }
    values->setRange(0, 1);
    values->setTicker(QSharedPointer<QCPAxisTickerText>::create());
    values->grid()->setVisible(true);
    values->grid()->setZeroLinePen(Qt::NoPen);
    auto* curve = new Plottable(this, cells, values, above ? row_ : column_);
    curve->setLayer(kLayer);
    rect->setMarginGroup(above ? QCP::msLeft | QCP::msRight : QCP::msTop | QCP::msBottom, margins_);
    if (above) {
        rect->setAutoMargins(QCP::msLeft | QCP::msRight);
        rect->setMargins({0, 8, 0, kGap});
        rect->setMinimumSize(0, kHeight);
        rect->setMaximumSize(QWIDGETSIZE_MAX, kHeight);
    } else {
        rect->setAutoMargins(QCP::msTop | QCP::msBottom);
        rect->setMargins({kAside, 0, 6, 0});  // the last label of the keys and the first of the values fit between
        rect->setMinimumSize(kHeight, 0);
        rect->setMaximumSize(kHeight, QWIDGETSIZE_MAX);
    }
    return rect;
}

void MapProfiles::set_shown(bool shown) {
    if (shown == shown_) return;
    shown_ = shown;
    QCPLayoutGrid* grid = plot_->plotLayout();
    if (shown) {
        above_ = make_rect(true);
        beside_ = make_rect(false);
        grid->setRowSpacing(0);
        grid->setColumnSpacing(0);
        grid->insertRow(0);
        grid->addElement(0, 0, above_);
        grid->addElement(1, 1, beside_);
        plot_->area()->setMarginGroup(QCP::msAll, margins_);
        plot_->area()->setMinimumMargins({0, 0, 0, 0});
        update_ticks();
    } else {
        plot_->area()->setMarginGroup(QCP::msAll, nullptr);
        plot_->area()->setMinimumMargins(plain_);
        // With their axes go the plottables.
        for (QCPAxisRect* rect : {above_, beside_}) {
            for (QCPAbstractPlottable* plottable : rect->plottables()) plot_->removePlottable(plottable);
            grid->remove(rect);
        }
        grid->simplify();
        above_ = beside_ = nullptr;
    }
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void MapProfiles::set_look(const figures::ColourScale& scale, const Theme& theme) {
    scale_ = scale;
    theme_ = theme;
    update_ticks();
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

void MapProfiles::update_ticks() {
    if (!shown_) return;
    for (QCPAxisRect* rect : {above_, beside_}) {
        QCPAxis* values = rect->axis(rect == above_ ? QCPAxis::atLeft : QCPAxis::atBottom);
        auto& ticker = static_cast<QCPAxisTickerText&>(*values->ticker());
        ticker.clear();
        const double room = rect == above_ ? kHeight : kHeight / 2.0;
        for (const auto& [at, label] : bar_ticks(scale_, room * kUnitsPerPixel, kTickPoints)) ticker.addTick(at, label);
        rect->setBackground(theme_.background);
        for (QCPAxis* axis : rect->axes()) {
            axis->setBasePen(QPen(theme_.line));
            axis->setTickPen(QPen(theme_.line));
            axis->setTickLength(0, 4);
            axis->setTickLabelColor(theme_.text);
            axis->grid()->setPen(QPen(theme_.grid, 1, Qt::DotLine));
        }
    }
}

void MapProfiles::set_curves(Curve row, Curve column) {
    row_ = std::move(row);
    column_ = std::move(column);
    if (shown_) plot_->layer(kLayer)->replot();
}

}  // namespace headscope::widgets
