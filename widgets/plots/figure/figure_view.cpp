// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/figure_view.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "widgets/fonts.h"
#include "widgets/idle_queue.h"
#include "widgets/plots/chart/few_lines.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/figure/figure_plot.h"
#include "widgets/quiet_qt.h"

namespace headscope::widgets {
namespace {

using namespace figures;

constexpr qint64 kQuick = 50;               // ms of a layout that may follow every step of a resize
constexpr int kSlowPause = 140;             // ms without a step after which a slower one is made
constexpr double kMostScreenPixels = 24e6;  // of a picture of the whole figure; larger ones are drawn part by part
constexpr double kLeastWidth = 70;          // mm
constexpr double kPoints = 9;               // a screen is farther away than a page

/// How high panels may become to fill a widget, mm; none: they keep the recipe's proportions.
struct Heights {
    double low = 0, high = 0;
};

Heights heights_of(const FigureData& figure) {
    if (figure.panels.empty()) return {};
    if (std::holds_alternative<Radar>(figure.panels.front().content)) return {26, 110};
    if (std::holds_alternative<Curves>(figure.panels.front().content)) return {26, 120};
    std::size_t rows = 0;
    for (const auto& panel : figure.panels)
        if (const auto* ridges = std::get_if<Ridges>(&panel.content)) rows = std::max(rows, ridges->ridges.size());
    const auto count = static_cast<double>(rows);
    return rows == 0 ? Heights{} : Heights{8 + 4.0 * count, 8 + 24 * count};
}

}  // namespace

FigureView::FigureView(QWidget* parent) : QAbstractScrollArea(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("figure"));
    setAccessibleName(tr("Figure"));
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    viewport()->setMouseTracking(true);
    viewport()->setAutoFillBackground(false);
    timer_.setSingleShot(true);
    connect(&timer_, &QTimer::timeout, this, [this] {
        waits_ = true;
        IdleQueue::of_window().post(this, [this] {
            if (std::exchange(waits_, false) && !timer_.isActive()) lay_out();  // active: it comes again
        });
    });
}

FigureView::~FigureView() = default;

bool FigureView::any_waits() {
    for (const QWidget* widget : QApplication::allWidgets())
        if (const auto* figure = qobject_cast<const FigureView*>(widget); figure && figure->waits()) return true;
    return false;
}

void FigureView::set_figure(std::shared_ptr<const FigureData> figure) {
    if (figure == given_) return;
    given_ = std::move(figure);
    find_marks();
    QStringList words;
    if (given_) {
        words << QString::fromStdString(given_->title);
        for (const auto& note : given_->notes) words << QString::fromStdString(note);
    }
    setAccessibleDescription(words.join(QLatin1Char('\n')));
    lay_out_soon();
}

void FigureView::set_theme(const Theme& theme) {
    if (theme.dark == theme_.dark && theme.background == theme_.background) return;
    theme_ = theme;
    lay_out_soon();
}

void FigureView::set_selected(std::vector<Selected> selected) {
    if (selected == selected_) return;
    selected_ = std::move(selected);
    find_marks();
    viewport()->update();
}

void FigureView::find_marks() {
    marks_.clear();
    for (const Selected& one : selected_) {
        const auto marks = given_ ? marks_of(*given_, one.analysis, one.site, one.head) : std::vector<FigureMark>();
        marks_.insert(marks_.end(), marks.begin(), marks.end());
    }
}

void FigureView::lay_out_soon() {
    timer_.start(cost_ <= kQuick ? 0 : kSlowPause);
}

double FigureView::scale() const {
    return static_cast<double>(logicalDpiX()) / kUnitsPerInch;
}

void FigureView::lay_out() {
    QElapsedTimer clock;
    clock.start();
    timer_.stop();
    waits_ = false;
    old_ = std::move(plot_);
    layout_ = {};
    size_ = {};
    if (given_ && !given_->panels.empty() && viewport()->width() > 0) {
        const QuietQt quiet;
        shown_ = *given_;
        shown_.table = nullptr;
        FigureStyle style;
        style.font_points = kPoints;
        // Room for the scroll bar is kept whether it shows or not: else its coming could make it go.
        const int width = this->width() - verticalScrollBar()->sizeHint().width();
        style.width_mm = std::max(kLeastWidth, width / scale() / units(1));
        layout_ = make_layout(shown_, style);
        fill_height(style, viewport()->height() / scale());
        plot_ = make_plot(layout_, theme_);
        size_ = (layout_.size * scale()).toSize();
    }
    set_scroll_range();
    cost_ = clock.elapsed();
    undrawn_ = true;
    IdleQueue::of_window().post(this, [this] {
        if (undrawn_) draw();
    });
    if (old_) IdleQueue::of_window().post(this, [this] { old_.reset(); });
}

void FigureView::draw() {
    QElapsedTimer clock;
    clock.start();
    undrawn_ = false;
    picture_ = {};
    drawn_ = {};
    draw_part(QRect(QPoint(0, 0), size_));
    cost_ += clock.elapsed();
    width_ = viewport()->width();
    viewport()->update();
    Q_EMIT laid_out();
}

/// Panels become higher or lower by what is missing or left, shared out over the rows of them.
void FigureView::fill_height(const FigureStyle& style, double room) {
    const Heights limits = heights_of(shown_);
    if (limits.high <= 0) return;
    std::set<double> rows;
    for (const auto& panel : layout_.panels) rows.insert(panel.plot.top());
    const double height = layout_.panels.front().plot.height();
    const double free = room - layout_.size.height() - 1;
    const double wanted =
        std::clamp(height + free / static_cast<double>(rows.size()), units(limits.low), units(limits.high));
    if (std::abs(wanted - height) < 1) return;
    if (std::holds_alternative<Radar>(shown_.panels.front().content))
        shown_.widest_mm = wanted / units(1);
    else
        shown_.panel_height_mm = wanted / units(1);
    layout_ = make_layout(shown_, style);
}

void FigureView::set_scroll_range() {
    const QSize room = viewport()->size();
    verticalScrollBar()->setRange(0, std::max(0, size_.height() - room.height()));
    verticalScrollBar()->setPageStep(room.height());
    verticalScrollBar()->setSingleStep(24);
    horizontalScrollBar()->setRange(0, std::max(0, size_.width() - room.width() - 1));
    horizontalScrollBar()->setPageStep(room.width());
    horizontalScrollBar()->setSingleStep(24);
}

void FigureView::draw_part(const QRect& wanted) {
    if (!plot_ || wanted.isEmpty()) return;
    const double ratio = devicePixelRatioF();
    QRect part = wanted;
    if (part.width() * ratio * part.height() * ratio > kMostScreenPixels)
        part &= QRect({horizontalScrollBar()->value(), verticalScrollBar()->value()}, viewport()->size());
    if (part.isEmpty()) return;
    QPixmap picture((QSizeF(part.size()) * ratio).toSize());
    picture.setDevicePixelRatio(ratio);
    picture.fill(theme_.background);
    QCPPainter painter;
    if (!painter.begin(&picture)) return;
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.translate(-part.topLeft());
    painter.scale(scale(), scale());
    plot_->toPainter(&painter, static_cast<int>(layout_.size.width()), static_cast<int>(layout_.size.height()));
    painter.end();
    picture_ = picture;
    drawn_ = part;
}

void FigureView::paintEvent(QPaintEvent*) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme_.background);
    if (!plot_) return;
    const QPoint scrolled(horizontalScrollBar()->value(), verticalScrollBar()->value());
    const QRect seen = QRect(scrolled, viewport()->size()) & QRect(QPoint(0, 0), size_);
    // While a slow layout waits for a pause the old picture is stretched.
    const bool old = waits() && width_ > 0 && width_ != viewport()->width();
    const double stretch = old ? static_cast<double>(viewport()->width()) / width_ : 1.0;
    if (!old && !undrawn_ && !drawn_.contains(seen)) draw_part(QRect(QPoint(0, 0), size_));
    painter.translate(-scrolled);
    painter.scale(stretch, stretch);
    painter.setRenderHint(QPainter::SmoothPixmapTransform, old);
    painter.drawPixmap(drawn_.topLeft(), picture_);
    if (marks_.empty() || undrawn_) return;
    draw_marks(painter);
}

void FigureView::draw_marks(QPainter& painter) const {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(scale(), scale());
    QColor faint = theme_.accent;
    faint.setAlphaF(theme_.dark ? 0.16F : 0.09F);
    for (const FigureMark& mark : marks_) {
        if (mark.panel < 0 || mark.panel >= std::ssize(layout_.panels)) continue;
        const auto& content = layout_.panels[static_cast<std::size_t>(mark.panel)].panel->content;
        if (mark.row < 0) {
            painter.setPen(QPen(theme_.accent, 1.2 / scale()));
            painter.drawRoundedRect(panel_area(layout_, mark.panel), 8, 8);
        } else if (std::holds_alternative<Ridges>(content)) {
            const QPainterPath band = row_path(layout_, mark.panel, mark.row);
            painter.fillPath(band, faint);
            QRectF edge = band.boundingRect();
            edge.setWidth(3 / scale());
            painter.fillRect(edge, theme_.accent);
        } else if (const auto* curves = std::get_if<Curves>(&content)) {
            mark_curve(&painter, *curves, mark);
        } else if (const QRectF cell = cell_area(layout_, mark.panel, mark.row, mark.column); !cell.isEmpty()) {
            painter.setPen(QPen(theme_.accent, 2.4 / scale()));
            painter.drawRect(cell);
        }
    }
}

/// The others step back behind a veil.
void FigureView::mark_curve(QPainter* painter, const Curves& curves, const FigureMark& mark) const {
    const QRectF plot = layout_.panels[static_cast<std::size_t>(mark.panel)].plot;
    painter->save();
    painter->setClipRect(plot);
    QColor veil = theme_.background;
    veil.setAlphaF(0.6F);
    painter->fillRect(plot.adjusted(3, 3, -3, -3), veil);
    if (static_cast<std::size_t>(mark.row) < curves.curves.size()) {
        const Curve& curve = curves.curves[static_cast<std::size_t>(mark.row)];
        QColor colour = member_colour(theme_, curve.colour, curve.shade);
        // One that covers the plot is not wide, which would fill it, and lets the others show through.
        if (curve.thin) colour.setAlphaF(0.75F);
        draw_lines(painter, QPen(colour, (curve.thin ? 1.0 : 2.6) / scale()), row_lines(layout_, mark.panel, mark.row));
    }
    painter->restore();
}

void FigureView::resizeEvent(QResizeEvent*) {
    set_scroll_range();
    lay_out_soon();
}

void FigureView::scrollContentsBy(int, int) {
    viewport()->update();
}

QPointF FigureView::to_units(QPoint place) const {
    const QPoint scrolled(horizontalScrollBar()->value(), verticalScrollBar()->value());
    return QPointF(place + scrolled) / scale();
}

FigureSpot FigureView::spot(QPoint place) const {
    return plot_ ? spot_at(layout_, to_units(place)) : FigureSpot{};
}

QRect FigureView::panel_rect(int panel) const {
    if (!plot_) return {};
    const QRectF area = panel_area(layout_, panel);
    if (area.isEmpty()) return {};
    const QPoint scrolled(horizontalScrollBar()->value(), verticalScrollBar()->value());
    return QRectF(area.topLeft() * scale(), area.size() * scale()).toRect().translated(-scrolled);
}

QPoint FigureView::row_point(int panel, int row) const {
    const QRectF area = row_path(layout_, panel, row).boundingRect();
    const QPoint scrolled(horizontalScrollBar()->value(), verticalScrollBar()->value());
    return (area.center() * scale()).toPoint() - scrolled;
}

QPoint FigureView::cell_point(int panel, int row, int column) const {
    const QPoint scrolled(horizontalScrollBar()->value(), verticalScrollBar()->value());
    return (cell_area(layout_, panel, row, column).center() * scale()).toPoint() - scrolled;
}

void FigureView::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) pressed_ = event->pos();
}

void FigureView::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    if ((event->pos() - pressed_).manhattanLength() > 6) return;
    const FigureSpot there = spot(event->pos());
    if (there.panel >= 0) Q_EMIT clicked(there.subject);
}

void FigureView::mouseMoveEvent(QMouseEvent* event) {
    Q_EMIT pointed(spot(event->pos()).text);
}

bool FigureView::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave) Q_EMIT pointed({});
    return QAbstractScrollArea::viewportEvent(event);
}

void FigureView::keyPressEvent(QKeyEvent* event) {
    QScrollBar* bar = verticalScrollBar();
    switch (event->key()) {
        case Qt::Key_PageUp:
            bar->triggerAction(QAbstractSlider::SliderPageStepSub);
            return;
        case Qt::Key_PageDown:
            bar->triggerAction(QAbstractSlider::SliderPageStepAdd);
            return;
        case Qt::Key_Home:
            bar->triggerAction(QAbstractSlider::SliderToMinimum);
            return;
        case Qt::Key_End:
            bar->triggerAction(QAbstractSlider::SliderToMaximum);
            return;
        default:
            event->ignore();  // arrows step through layers and heads
    }
}

void FigureView::changeEvent(QEvent* event) {
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) lay_out_soon();
    QAbstractScrollArea::changeEvent(event);
}

}  // namespace headscope::widgets
