// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_scale.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr int kBar = 10, kTick = 4, kMargin = 8, kWidestBar = 420;

}  // namespace

ScaleBar::ScaleBar(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("colour_scale"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void ScaleBar::set_ticks(const QString& name, figures::ColourMap map, std::vector<std::pair<double, QString>> ticks) {
    name_ = name;
    map_ = map;
    ticks_ = std::move(ticks);
    setAccessibleName(name_);
    setToolTip(name_);
    update();
}

void ScaleBar::set_scale(const HeatCells& cells, figures::Normalise normalise, const QString& unit) {
    std::vector<std::pair<double, QString>> ticks;
    QString name;
    switch (normalise) {
        case figures::Normalise::absolute:
            name =
                unit.isEmpty() ? tr("Absolute: values as measured") : tr("Absolute: values as measured, %1").arg(unit);
            for (const double value : round_ticks(cells.scale.scale, cells.scale.minimum, cells.scale.maximum, 5))
                ticks.emplace_back(fraction(cells.scale, value), number_label(value));
            break;
        case figures::Normalise::minmax:
            name = tr("Min–max: share of the range of all heads");
            ticks = {{0, tr("lowest: %1").arg(cells.format.text(cells.lowest))},
                     {1, tr("highest: %1").arg(cells.format.text(cells.highest))}};
            break;
        case figures::Normalise::layer:
            name = tr("Per layer: share of the range within each layer");
            ticks = {{0, tr("lowest of its layer")}, {1, tr("highest of its layer")}};
            break;
    }
    if (std::isnan(cells.lowest)) ticks.clear();
    set_ticks(name, cells.scale.map, std::move(ticks));
}

void ScaleBar::set_theme(const Theme& theme) {
    theme_ = theme;
    update();
}

QSize ScaleBar::sizeHint() const {
    return {260, 2 * fontMetrics().height() + kBar + kTick + 8};
}

void ScaleBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.background);
    const QFontMetrics metrics = painter.fontMetrics();
    painter.setPen(theme_.text);
    const QRect title(kMargin, 2, width() - 2 * kMargin, metrics.height());
    painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(name_, Qt::ElideRight, title.width()));
    const QRect bar(kMargin, title.bottom() + 4, std::min(kWidestBar, width() - 2 * kMargin), kBar);
    if (bar.width() <= 0) return;
    const auto& table = colour_table(map_, theme_);
    QImage colours(kMapColours, 1, QImage::Format_RGB32);
    for (int i = 0; i < kMapColours; ++i) colours.setPixel(i, 0, table[static_cast<std::size_t>(i)]);
    painter.drawImage(bar, colours);
    painter.setPen(theme_.line);
    painter.drawRect(bar.adjusted(0, 0, -1, -1));
    int free = -1;  // labels do not run into each other
    for (std::size_t i = 0; i < ticks_.size(); ++i) {
        const auto& [at, label] = ticks_[i];
        const int x = bar.left() + static_cast<int>(std::lround(at * (bar.width() - 1)));
        painter.setPen(theme_.line);
        painter.drawLine(x, bar.bottom() + 1, x, bar.bottom() + kTick);
        const int wide = metrics.horizontalAdvance(label);
        const int left = std::clamp(x - wide / 2, kMargin / 2, std::max(kMargin / 2, width() - wide - kMargin / 2));
        if (left <= free) continue;
        painter.setPen(theme_.muted);
        painter.drawText(left, bar.bottom() + kTick + metrics.ascent() + 1, label);
        free = left + wide + 6;
    }
}

}  // namespace headscope::widgets
