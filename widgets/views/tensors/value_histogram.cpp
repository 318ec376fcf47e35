// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/tensors/value_histogram.h"

#include <QHelpEvent>
#include <QLocale>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "widgets/plots/ticks.h"

namespace headscope::widgets {

ValueHistogram::ValueHistogram(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("histogram"));
    setAccessibleName(tr("Histogram of the values"));
}

void ValueHistogram::set_numbers(std::shared_ptr<const TensorNumbers> numbers) {
    numbers_ = std::move(numbers);
    update();
}

void ValueHistogram::set_theme(const Theme& theme) {
    theme_ = theme;
    update();
}

QRectF ValueHistogram::plot() const {
    const double line = fontMetrics().height();
    return QRectF(rect()).adjusted(fontMetrics().horizontalAdvance(QStringLiteral("10000")) + 12, line * 0.6, -10,
                                   -2.5 * line);
}

void ValueHistogram::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.background);
    if (!numbers_ || numbers_->counts.empty()) return;
    const QRectF area = plot();
    const auto& counts = numbers_->counts;
    const double most = std::log10(static_cast<double>(*std::max_element(counts.begin(), counts.end())) + 1);
    const double low = numbers_->edges.front(), high = numbers_->edges.back();
    const int line = fontMetrics().height();
    // Decades of counts.
    const int step = std::max(1, static_cast<int>(std::ceil(most * line * 1.6 / std::max(1.0, area.height()))));
    for (int decade = 0; decade <= most; decade += step) {
        const double y = area.bottom() - std::log10(std::pow(10.0, decade) + 1) / most * area.height();
        painter.setPen(theme_.grid);
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
        painter.setPen(theme_.muted);
        painter.drawText(QRectF(0, y - line / 2.0, area.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter,
                         number_label(std::pow(10.0, decade)));
    }
    const auto across = [&](double value) {
        return high > low ? area.left() + (value - low) / (high - low) * area.width() : area.center().x();
    };
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.categorical(0));
    const double width = area.width() / static_cast<double>(counts.size());
    for (std::size_t b = 0; b < counts.size(); ++b) {
        if (counts[b] == 0) continue;
        const double height = std::log10(static_cast<double>(counts[b]) + 1) / most * area.height();
        const double left = std::floor(area.left() + width * static_cast<double>(b));
        const double right = std::floor(area.left() + width * static_cast<double>(b + 1));
        painter.drawRect(QRectF(left, area.bottom() - height, std::max(1.0, right - left), height));
    }
    painter.setPen(theme_.line);
    painter.drawLine(area.bottomLeft(), area.bottomRight());
    painter.setPen(theme_.text);
    if (high > low) {
        const int wanted = std::max(2, static_cast<int>(area.width() / 60));
        auto ticks = round_ticks(figures::ScaleKind::linear, low, high, wanted);
        if (ticks.size() < 2)
            ticks = round_ticks(figures::ScaleKind::linear, low, high, 2 * wanted);  // one is no scale
        for (const double tick : ticks) {
            const QString text = number_label(tick);
            const double wide = fontMetrics().horizontalAdvance(text) + 2;
            const double x = std::clamp(across(tick) - wide / 2, 0.0, std::max(0.0, this->width() - wide));
            painter.drawLine(QPointF(across(tick), area.bottom()), QPointF(across(tick), area.bottom() + 4));
            painter.drawText(QRectF(x, area.bottom() + 5, wide, line), Qt::AlignCenter, text);
        }
    } else {
        painter.drawText(QRectF(0, area.bottom() + 5, this->width(), line), Qt::AlignCenter, number_label(low));
    }
    painter.setPen(theme_.muted);
    painter.drawText(QRectF(area.left(), area.bottom() + 5 + line, area.width(), line), Qt::AlignCenter,
                     tr("value; counts on a logarithmic axis"));
}

bool ValueHistogram::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || !numbers_ || numbers_->counts.empty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRectF area = plot();
    const double share = (help->pos().x() - area.left()) / std::max(1.0, area.width());
    const auto bins = static_cast<double>(numbers_->counts.size());
    if (share < 0 || share > 1) {
        QToolTip::hideText();
        return true;
    }
    const auto bin = static_cast<std::size_t>(std::min(share * bins, bins - 1));
    QToolTip::showText(help->globalPos(),
                       tr("%1 to %2: %3 values")
                           .arg(number_label(numbers_->edges[bin]), number_label(numbers_->edges[bin + 1]),
                                QLocale::c().toString(static_cast<qlonglong>(numbers_->counts[bin]))),
                       this);
    return true;
}

}  // namespace headscope::widgets
