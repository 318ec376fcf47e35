// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/loss/loss_curve.h"

#include <QApplication>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/series.h"

namespace headscope::widgets {
namespace {

constexpr int kLeastMean = 8, kMeansAcross = 40;  ///< the running mean takes a fortieth of the text
constexpr double kFewest = 8;                     ///< tokens that zooming in leaves

}  // namespace

LossCurve::LossCurve(QWidget* parent) : QCustomPlot(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("loss_curve"));
    setAccessibleName(tr("Loss by position"));
    setToolTip(tr("Drag moves · Wheel zooms · Double click shows all · Click chooses a token"));
    addGraph()->setName(tr("loss"));
    addGraph()->setName(tr("running mean"));
    mark_ = new QCPItemStraightLine(this);
    mark_->setVisible(false);
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    axisRect()->setRangeDrag(Qt::Horizontal);
    axisRect()->setRangeZoom(Qt::Horizontal);
    axisRect()->setRangeZoomFactor(0.8);
    xAxis->setLabel(tr("position"));
    yAxis->setLabel(tr("loss (nats)"));
    xAxis->setNumberFormat("f");
    xAxis->setNumberPrecision(0);
    yAxis->ticker()->setTickCount(3);
    // Above the curves, which fill the plot.
    plotLayout()->insertRow(0);
    plotLayout()->addElement(0, 0, legend);
    plotLayout()->setRowStretchFactor(0, 0.001);
    plotLayout()->setRowSpacing(0);
    legend->setVisible(true);
    legend->setFillOrder(QCPLayoutGrid::foColumnsFirst);
    legend->setBorderPen(Qt::NoPen);
    legend->setBrush(Qt::NoBrush);
    legend->setMargins({60, 2, 0, 0});
    connect(xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this, &LossCurve::keep_inside);
    set_theme(theme_);
}

void LossCurve::set_theme(const Theme& theme) {
    theme_ = theme;
    setBackground(theme.background);
    for (QCPAxis* axis : {xAxis, yAxis}) {
        axis->setBasePen(QPen(theme.line));
        axis->setTickPen(QPen(theme.line));
        axis->setSubTicks(false);
        axis->setTickLabelColor(theme.text);
        axis->setLabelColor(theme.text);
        axis->setTickLabelFont(font());
        axis->setLabelFont(font());
        axis->grid()->setPen(QPen(theme.grid, 1, Qt::SolidLine));
        axis->grid()->setZeroLinePen(QPen(theme.grid));
    }
    xAxis->grid()->setVisible(false);
    QColor faint = theme.categorical(0);
    faint.setAlphaF(theme.dark ? 0.5F : 0.4F);
    graph(0)->setPen(QPen(faint, 1));
    graph(1)->setPen(QPen(theme.categorical(1), 2));
    mark_->setPen(QPen(theme.accent, 1.5, Qt::DashLine));
    legend->setTextColor(theme.text);
    legend->setFont(font());
    replot(QCustomPlot::rpQueuedReplot);
}

void LossCurve::set_values(const std::vector<float>& values) {
    const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (std::equal(values.begin(), values.end(), values_.begin(), values_.end(), same)) return;
    const bool other_length = values.size() != values_.size();
    values_ = values;
    mean_width_ = std::max(kLeastMean, static_cast<int>(values.size()) / kMeansAcross) | 1;
    const auto width = static_cast<std::size_t>(mean_width_);
    const std::vector<double> numbers(values.begin(), values.end()), means = running_mean(numbers, width, width / 2);
    QVector<QCPGraphData> raw, mean;
    double highest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto place = static_cast<double>(i);
        // A token that the model holds for impossible has no place in the plot.
        const bool there = std::isfinite(values[i]);
        raw.append({place, there ? static_cast<double>(values[i]) : std::numeric_limits<double>::quiet_NaN()});
        mean.append({place, means[i]});
        if (there) highest = std::max(highest, static_cast<double>(values[i]));
    }
    graph(0)->data()->set(raw, true);
    graph(1)->data()->set(mean, true);
    graph(0)->setAntialiased(values.size() < 4000);
    graph(1)->setName(tr("mean of %1 tokens").arg(mean_width_));
    yAxis->setRange(0, highest > 0 ? highest * 1.05 : 1);
    if (other_length) show_all();
    replot(QCustomPlot::rpQueuedReplot);
}

void LossCurve::show_all() {
    xAxis->setRange(-0.5, std::max(1.0, static_cast<double>(values_.size())) - 0.5);
    replot(QCustomPlot::rpQueuedReplot);
}

void LossCurve::keep_inside(const QCPRange& range) {
    const double all = std::max(1.0, static_cast<double>(values_.size()));
    const double size = std::clamp(range.size(), std::min(kFewest, all), all);
    const double lower =
        std::clamp(range.size() == size ? range.lower : range.center() - size / 2, -0.5, all - size - 0.5);
    if (lower != range.lower || lower + size != range.upper) xAxis->setRange(lower, lower + size);
}

void LossCurve::set_chosen(std::optional<std::int64_t> token) {
    mark_->setVisible(token.has_value());
    if (token) {
        const auto place = static_cast<double>(*token);
        mark_->point1->setCoords(place, 0);
        mark_->point2->setCoords(place, 1);
        const QCPRange range = xAxis->range();
        if (!range.contains(place)) xAxis->setRange(place - range.size() / 2, place + range.size() / 2);
    }
    replot(QCustomPlot::rpQueuedReplot);
}

void LossCurve::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    QCustomPlot::mousePressEvent(event);
}

void LossCurve::mouseReleaseEvent(QMouseEvent* event) {
    QCustomPlot::mouseReleaseEvent(event);
    const bool click = (event->pos() - pressed_).manhattanLength() < QApplication::startDragDistance();
    if (event->button() != Qt::LeftButton || !click || !axisRect()->rect().contains(event->pos())) return;
    const auto token = std::llround(xAxis->pixelToCoord(event->pos().x()));
    if (token >= 0 && token < std::ssize(values_)) Q_EMIT chosen(token);
}

void LossCurve::mouseDoubleClickEvent(QMouseEvent* event) {
    QCustomPlot::mouseDoubleClickEvent(event);
    show_all();
}

}  // namespace headscope::widgets
