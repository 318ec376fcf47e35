// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/lines/lines_canvas.h"

#include <QElapsedTimer>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "widgets/fonts.h"
#include "widgets/plots/ticks.h"
#include "widgets/views/lines/lines_layout.h"

namespace headscope::widgets {

LinesCanvas::LinesCanvas(QWidget* parent) : QAbstractScrollArea(parent), theme_(make_theme(false)) {
    setFocusPolicy(Qt::StrongFocus);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
    viewport()->setMouseTracking(true);
    QFont readable = figure_font(8);
    readable.setPixelSize(std::max(12, fontInfo().pixelSize()));
    viewport()->setFont(readable);
    timer_.setInterval(0);
    connect(&timer_, &QTimer::timeout, this, &LinesCanvas::draw_more);
}

void LinesCanvas::set_content(Content content) {
    if (content == content_) return;
    const bool moved = content.window != content_.window;
    content_ = std::move(content);
    if (moved) pointed_.reset();
    std::vector<const WindowWeights*> heads;
    for (const Head& head : content_.heads) heads.push_back(head.weights.get());
    lines_ = lines_of(heads, content_.threshold, kMostLines, found_);
    lay_out();
}

void LinesCanvas::set_theme(const Theme& theme) {
    theme_ = theme;
    viewport()->update();  // the lines have the colours of their heads
}

void LinesCanvas::set_chosen(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    query_ = query;
    key_ = key;
    viewport()->update();
}

void LinesCanvas::show_query(std::int64_t query) {
    const std::int64_t row = query - content_.window.q_begin;
    if (row < 0 || row >= content_.window.queries()) return;
    const int top = row_top(Side::query, row), value = verticalScrollBar()->value();
    if (top < value || top + row_height_ > value + viewport()->height())
        verticalScrollBar()->setValue(top - viewport()->height() / 2);
}

const std::vector<QString>& LinesCanvas::labels(Side side) const {
    return side == Side::query ? content_.queries : content_.keys;
}

std::int64_t LinesCanvas::first(Side side) const {
    return side == Side::query ? content_.window.q_begin : content_.window.k_begin;
}

void LinesCanvas::lay_out() {
    const QFontMetrics metrics(viewport()->font());
    row_height_ = metrics.height() + 3;
    int widest = 60;
    for (const Side side : {Side::query, Side::key})
        for (const QString& label : labels(side)) widest = std::max(widest, metrics.horizontalAdvance(label));
    const int width = viewport()->width();
    label_width_ = std::min(widest + 2 * kLabelEdge, width * 3 / 10);
    // Lines that run far are hard to follow: the columns stay together on a wide screen.
    const int between = std::clamp(width - 2 * label_width_ - kNumberWidth, 60, kWidestGap);
    const int taken = between + 2 * label_width_ + kNumberWidth;
    left_ = std::max(0, (width - taken) / 2) + label_width_;
    right_ = left_ + between;
    const auto rows = static_cast<int>(std::max(content_.queries.size(), content_.keys.size()));
    const int height = row_top(Side::key, rows + 1) + kEdge;
    verticalScrollBar()->setSingleStep(row_height_);
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
    draw_again();
}

int LinesCanvas::row_top(Side side, std::int64_t row) const {
    if (row < 0) return kEdge;
    int top = kEdge + static_cast<int>(row) * row_height_;
    if (content_.window.k_begin > 0) top += row_height_ + kEdge;
    if (side == Side::key && row >= std::ssize(content_.keys)) top += kEdge;
    return top;
}

double LinesCanvas::middle(Side side, std::int64_t row) const {
    return row_top(side, row) + row_height_ / 2.0;
}

void LinesCanvas::draw_again() {
    const double ratio = devicePixelRatioF();
    const auto rows = static_cast<std::int64_t>(std::max(content_.queries.size(), content_.keys.size()));
    const QSize size(std::max(1, right_ - left_), row_top(Side::key, rows + 1) + kEdge);
    image_ = QImage(size * ratio, QImage::Format_ARGB32_Premultiplied);
    image_.setDevicePixelRatio(ratio);
    image_.fill(Qt::transparent);
    painted_ = 0;
    timer_.start();
    draw_more();
}

void LinesCanvas::draw_more() {
    QElapsedTimer clock;
    clock.start();
    QPainter painter(&image_);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.translate(-left_, 0);
    while (painted_ < lines_.size() && clock.elapsed() < kSliceMilliseconds) draw_line(painter, lines_[painted_++], 1);
    if (complete()) timer_.stop();
    viewport()->update();
}

/// In content coordinates.
void LinesCanvas::draw_line(QPainter& painter, const WeightLine& line, double strength) const {
    const auto heads = static_cast<double>(content_.heads.size());
    const double shift = (line.head - (heads - 1) / 2) * std::min(2.0, row_height_ * 0.6 / std::max(1.0, heads));
    const double y1 = middle(Side::query, line.query) + shift, y2 = middle(Side::key, line.key) + shift;
    const double bend = (right_ - left_) * 0.45;
    QPainterPath path(QPointF(left_, y1));
    path.cubicTo(left_ + bend, y1, right_ - bend, y2, right_, y2);
    QColor colour = content_.heads[static_cast<std::size_t>(line.head)].colour;
    const double weight = std::clamp(static_cast<double>(line.weight), 0.0, 1.0);
    colour.setAlphaF(static_cast<float>(std::clamp(strength * (0.1 + 0.85 * std::sqrt(weight)), 0.0, 1.0)));
    QPen pen(colour, 0.7 + 3.3 * weight, Qt::SolidLine, Qt::FlatCap);
    if (line.key < 0 || line.key >= std::ssize(content_.keys)) pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
}

void LinesCanvas::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    lay_out();
}

void LinesCanvas::scrollContentsBy(int, int) {
    viewport()->update();
}

QRect LinesCanvas::label_rect(Side side, std::int64_t token) const {
    const std::int64_t row = token - first(side);
    if (row < 0 || row >= std::ssize(labels(side))) return {};
    const int top = row_top(side, row) - verticalScrollBar()->value();
    return side == Side::query ? QRect(left_ - label_width_, top, label_width_, row_height_)
                               : QRect(right_, top, label_width_, row_height_);
}

std::optional<LinesCanvas::Token> LinesCanvas::token_at(const QPoint& place) const {
    const Side side = place.x() < (left_ + right_) / 2 ? Side::query : Side::key;
    // The outer parts of the lines belong to the tokens that they leave.
    const int reach = (right_ - left_) / 8;
    if (place.x() > left_ + reach && place.x() < right_ - reach) return std::nullopt;
    if (place.x() < left_ - label_width_ || place.x() > right_ + label_width_ + kNumberWidth) return std::nullopt;
    const int y = place.y() + verticalScrollBar()->value() - row_top(side, 0);
    if (y < 0 || y / row_height_ >= std::ssize(labels(side))) return std::nullopt;
    return Token(side, first(side) + y / row_height_);
}

void LinesCanvas::point_at(std::optional<Token> token) {
    if (token == pointed_) return;
    pointed_ = token;
    viewport()->update();
    Q_EMIT pointed();
}

void LinesCanvas::mouseMoveEvent(QMouseEvent* event) {
    point_at(token_at(event->position().toPoint()));
    viewport()->setCursor(pointed_ ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void LinesCanvas::mousePressEvent(QMouseEvent* event) {
    const auto token = token_at(event->position().toPoint());
    if (event->button() == Qt::LeftButton && token) Q_EMIT clicked(static_cast<int>(token->first), token->second);
}

bool LinesCanvas::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave) point_at(std::nullopt);
    return QAbstractScrollArea::viewportEvent(event);
}

void LinesCanvas::keyPressEvent(QKeyEvent* event) {
    const bool control = (event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier;
    QScrollBar* bar = verticalScrollBar();
    switch (event->key()) {
        case Qt::Key_Left:
        case Qt::Key_Right:
            if (!control) return event->ignore();
            Q_EMIT stepped(event->key() == Qt::Key_Left ? -1 : 1);
            return;
        case Qt::Key_PageUp:
            return bar->triggerAction(QAbstractSlider::SliderPageStepSub);
        case Qt::Key_PageDown:
            return bar->triggerAction(QAbstractSlider::SliderPageStepAdd);
        case Qt::Key_Home:
            return bar->triggerAction(QAbstractSlider::SliderToMinimum);
        case Qt::Key_End:
            return bar->triggerAction(QAbstractSlider::SliderToMaximum);
        default:
            event->ignore();
    }
}

/// The strongest lines of the token pointed at, also weak ones.
std::vector<WeightLine> LinesCanvas::pointed_lines() const {
    std::vector<WeightLine> lines;
    if (!pointed_) return lines;
    std::vector<const WindowWeights*> heads;
    for (const Head& head : content_.heads) heads.push_back(head.weights.get());
    std::int64_t found = 0;
    const std::int64_t row = pointed_->second - first(pointed_->first);
    for (const WeightLine& line : lines_of(heads, std::min(content_.threshold, kWeakest), std::size_t(-1), found)) {
        if ((pointed_->first == Side::query ? line.query : line.key) == row) lines.push_back(line);
    }
    if (lines.size() > kMostPointed) lines.erase(lines.begin(), lines.end() - kMostPointed);
    return lines;
}

QString LinesCanvas::pointed_text() const {
    if (!pointed_) return {};
    const bool query = pointed_->first == Side::query;
    const auto row = static_cast<std::size_t>(pointed_->second - first(pointed_->first));
    QString text = tr("‘%1’ (token %2) %3:")
                       .arg(labels(pointed_->first)[row], QString::number(pointed_->second),
                            query ? tr("looks at") : tr("is looked at by"));
    auto lines = pointed_lines();
    std::reverse(lines.begin(), lines.end());
    for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 5); ++i) {
        const std::int64_t other = query ? lines[i].key : lines[i].query;
        const auto& names = labels(query ? Side::key : Side::query);
        const QString name = other < 0                    ? outside_text(true)
                             : other >= std::ssize(names) ? outside_text(false)
                                                          : names[static_cast<std::size_t>(other)];
        text += QStringLiteral(" %1 %2").arg(name, number_label(std::round(lines[i].weight * 1e3) / 1e3));
        const auto& head = content_.heads[static_cast<std::size_t>(lines[i].head)];
        if (content_.heads.size() > 1) text += tr(" (head %1)").arg(head.head);
        if (i + 1 < std::min<std::size_t>(lines.size(), 5)) text += QLatin1String(" ·");
    }
    return text;
}

}  // namespace headscope::widgets
