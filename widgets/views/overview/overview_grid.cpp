// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_grid.h"

#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr int kSmallest = 7, kWidestCell = 110, kHighest = 84;  ///< of a cell, pixels
constexpr int kGridPadding = 6, kBracket = 7, kGridGap = 5;

QColor mixed(const QColor& a, const QColor& b, double share) {
    const auto mix = [share](int x, int y) { return static_cast<int>(x + (y - x) * share + 0.5); };
    return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QFont smaller(QFont font) {
    font.setPointSizeF(std::max(6.5, font.pointSizeF() * 0.9));
    return font;
}

}  // namespace

HeadGrid::HeadGrid(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("heat_map"));
    setAccessibleName(tr("Heat map of layers and heads"));
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
}

void HeadGrid::set_content(GridContent content) {
    content_ = std::move(content);
    columns_ = 0;
    for (const auto& row : content_.rows) columns_ = std::max(columns_, row.heads);
    lay_out();
    updateGeometry();
    update();
}

void HeadGrid::set_theme(const Theme& theme) {
    theme_ = theme;
    update();
}

void HeadGrid::set_selected(std::int64_t row, std::int64_t head) {
    if (row == selected_row_ && head == selected_head_) return;
    selected_row_ = row;
    selected_head_ = head;
    update();
}

void HeadGrid::lay_out() {
    const QFontMetrics metrics(smaller(font()));
    int widest = metrics.height();
    for (const auto& row : content_.rows) widest = std::max(widest, metrics.horizontalAdvance(row.label));
    // One grouping for all rows, or none is drawn as gaps.
    ruler_.group = content_.rows.empty() ? 1 : content_.rows.front().group;
    for (const auto& row : content_.rows)
        if (row.group != ruler_.group) ruler_.group = 1;
    const std::int64_t gaps = ruler_.group > 1 ? (columns_ - 1) / ruler_.group : 0;
    left_ = kGridPadding + metrics.height() + widest + kGridPadding;
    top_ = 2 * metrics.height() + kGridPadding + (ruler_.group > 1 ? kBracket : 2);
    const int wide = std::max(1, width() - left_ - kGridPadding), high = std::max(1, height() - top_ - kGridPadding);
    ruler_.gap = gaps > 0 ? std::clamp(wide / static_cast<int>(columns_) / 4, 2, kGridGap) : 0;
    const auto columns = static_cast<int>(std::max<std::int64_t>(1, columns_));
    const int cell = (wide - static_cast<int>(gaps * static_cast<int>(ruler_.gap))) / columns;
    ruler_.cell = std::clamp(cell, kSmallest, kWidestCell);
    const auto rows = std::max<int>(1, static_cast<int>(content_.rows.size()));
    cell_height_ = std::clamp(high / rows, kSmallest, std::min(kHighest, std::max(kSmallest, 3 * (int)ruler_.cell)));
    int widest_value = 0;
    for (const double value : content_.cells.values)
        if (!std::isnan(value))
            widest_value = std::max(widest_value, metrics.horizontalAdvance(content_.cells.format.text(value)));
    values_ = widest_value + 6 <= static_cast<int>(ruler_.cell) && metrics.height() + 2 <= cell_height_;
}

QSize HeadGrid::sizeHint() const {
    return {left_ + static_cast<int>(columns_) * 24, top_ + static_cast<int>(content_.rows.size()) * 24};
}

QSize HeadGrid::minimumSizeHint() const {
    const std::int64_t gaps = ruler_.group > 1 ? (columns_ - 1) / ruler_.group : 0;
    return {left_ + static_cast<int>(columns_ * kSmallest + gaps * 2) + kGridPadding,
            top_ + static_cast<int>(content_.rows.size()) * kSmallest + kGridPadding};
}

void HeadGrid::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    lay_out();
}

QRect HeadGrid::cell(std::int64_t row, std::int64_t head) const {
    return {left_ + static_cast<int>(ruler_.begin(head)), top_ + static_cast<int>(row) * cell_height_,
            static_cast<int>(ruler_.cell), cell_height_};
}

HeadGrid::Hit HeadGrid::at(const QPointF& place) const {
    const double y = place.y() - top_;
    if (y < 0 || place.x() < left_) return {};
    const auto row = static_cast<std::int64_t>(y / cell_height_);
    const std::int64_t head = ruler_.at(place.x() - left_);
    if (row >= std::ssize(content_.rows) || head < 0 || head >= content_.rows[static_cast<std::size_t>(row)].heads)
        return {};
    return {row, head};
}

QColor HeadGrid::colour(std::int64_t row, std::int64_t head) const {
    const auto& about = content_.rows.at(static_cast<std::size_t>(row));
    const std::size_t index = about.first + static_cast<std::size_t>(head);
    if (index >= content_.cells.fractions.size() || !about.done) return theme_.none;
    const auto& table = colour_table(content_.cells.scale.map, theme_);
    const QColor full(colour_of(table, content_.cells.fractions[index], theme_.none.rgb()));
    const bool dimmed = index < content_.dimmed.size() && content_.dimmed[index];
    return dimmed ? mixed(full, theme_.background, 0.82) : full;
}

void HeadGrid::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.background);
    painter.setFont(smaller(font()));
    draw_axes(painter);
    for (std::int64_t row = 0; row < std::ssize(content_.rows); ++row) draw_row(painter, row);
    draw_selected(painter);
}

void HeadGrid::draw_axes(QPainter& painter) const {
    const QFontMetrics metrics = painter.fontMetrics();
    const int line = metrics.height();
    const int wide = static_cast<int>(ruler_.end(std::max<std::int64_t>(0, columns_ - 1)));
    const int high = static_cast<int>(content_.rows.size()) * cell_height_;
    painter.setPen(theme_.muted);
    painter.drawText(QRect(left_, kGridPadding / 2, wide, line), Qt::AlignHCenter | Qt::TextDontClip, tr("head"));
    painter.save();
    painter.translate(kGridPadding / 2, top_ + high);
    painter.rotate(-90);
    painter.drawText(QRect(0, 0, high, line), Qt::AlignHCenter | Qt::TextDontClip, tr("layer"));
    painter.restore();

    const double number = metrics.horizontalAdvance(QString::number(columns_)) + 4.0;
    const std::int64_t across = round_stride(number / ruler_.cell);
    for (std::int64_t head = 0; head < columns_; head += across) {
        const QRect place(cell(0, head).left(), kGridPadding / 2 + line, static_cast<int>(ruler_.cell), line);
        painter.setPen(head == selected_head_ ? theme_.text : theme_.muted);
        painter.drawText(place, Qt::AlignCenter | Qt::TextDontClip, QString::number(head));
    }
    const std::int64_t down = round_stride(static_cast<double>(line) / cell_height_);
    for (std::int64_t row = 0; row < std::ssize(content_.rows); row += down) {
        const QRect place(line, cell(row, 0).top(), left_ - line - kGridPadding, cell_height_);
        painter.setPen(row == selected_row_ ? theme_.text : theme_.muted);
        painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip,
                         content_.rows[static_cast<std::size_t>(row)].label);
    }
    if (ruler_.group <= 1) return;
    painter.setPen(QPen(theme_.muted, 1));
    for (std::int64_t first = 0; first < columns_; first += ruler_.group) {
        const std::int64_t last = std::min(first + ruler_.group, columns_) - 1;
        const int begin = cell(0, first).left() + 1, end = cell(0, last).right() - 1, y = top_ - kBracket + 1;
        painter.drawLine(begin, y, end, y);
        painter.drawLine(begin, y, begin, y + 3);
        painter.drawLine(end, y, end, y + 3);
    }
}

void HeadGrid::draw_row(QPainter& painter, std::int64_t row) const {
    const auto& about = content_.rows[static_cast<std::size_t>(row)];
    if (about.heads == 0 || !about.matrix) {
        const QRect whole(left_, cell(row, 0).top(),
                          static_cast<int>(ruler_.end(std::max<std::int64_t>(columns_, 1) - 1)), cell_height_);
        painter.fillRect(whole.adjusted(0, 0, -1, -1), theme_.none);
        painter.setPen(theme_.muted);
        if (cell_height_ >= painter.fontMetrics().height())
            painter.drawText(whole, Qt::AlignCenter, tr("no attention weights"));
        return;
    }
    if (content_.of_layer && about.done) {
        const QRect whole = cell(row, 0).united(cell(row, about.heads - 1));
        draw_cell(painter, whole, about.first, colour(row, 0));
        return;
    }
    for (std::int64_t head = 0; head < about.heads; ++head) {
        const QRect rect = cell(row, head);
        if (!about.done) {
            const QRect inner = rect.adjusted(0, 0, ruler_.cell >= 5 ? -1 : 0, cell_height_ >= 5 ? -1 : 0);
            painter.fillRect(inner, mixed(theme_.background, theme_.none, 0.6));
            painter.fillRect(inner, QBrush(mixed(theme_.none, theme_.muted, 0.35), Qt::BDiagPattern));
            continue;
        }
        draw_cell(painter, rect, about.first + static_cast<std::size_t>(head), colour(row, head));
    }
    // Groups that differ from row to row have no gaps: a line between them.
    if (ruler_.group > 1 || about.group <= 1) return;
    painter.setPen(QPen(theme_.text, 1));
    for (std::int64_t head = about.group; head < about.heads; head += about.group) {
        const QRect rect = cell(row, head);
        painter.drawLine(rect.left() - 1, rect.top(), rect.left() - 1, rect.bottom());
    }
}

void HeadGrid::draw_cell(QPainter& painter, const QRect& rect, std::size_t index, const QColor& fill) const {
    const bool roomy = rect.width() >= 5 && rect.height() >= 5;
    const QRect inner = roomy ? rect.adjusted(0, 0, -1, -1) : rect;
    painter.fillRect(inner, fill);
    const auto is = [index](const std::vector<bool>& which) { return index < which.size() && which[index]; };
    const QColor ink = readable_on(fill);
    const bool dimmed = is(content_.dimmed);
    if (values_ && index < content_.cells.values.size()) {
        painter.setPen(dimmed ? mixed(fill, ink, 0.4) : ink);
        painter.drawText(inner, Qt::AlignCenter, content_.cells.format.text(content_.cells.values[index]));
    }
    if (is(content_.off)) {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.accent, 1.6));
        const QRectF cross = QRectF(inner).adjusted(1.5, 1.5, -1.5, -1.5);
        painter.drawLine(cross.topLeft(), cross.bottomRight());
        painter.drawLine(cross.topRight(), cross.bottomLeft());
        painter.restore();
    }
    if (!is(content_.marked)) return;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.categorical(4));
    const double size = std::clamp(std::min(rect.width(), rect.height()) * 0.45, 3.0, 9.0);
    const QPointF corner(inner.right() + 1.0, inner.top());
    painter.drawPolygon(QPolygonF({corner, corner + QPointF(-size, 0), corner + QPointF(0, size)}));
    painter.restore();
}

void HeadGrid::draw_selected(QPainter& painter) const {
    if (selected_row_ >= std::ssize(content_.rows)) return;
    if (selected_head_ >= content_.rows[static_cast<std::size_t>(selected_row_)].heads) return;
    const QRectF rect = QRectF(cell(selected_row_, selected_head_)).adjusted(-0.5, -0.5, -0.5, -0.5);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.background, 4.5));
    painter.drawRoundedRect(rect, 1.5, 1.5);
    painter.setPen(QPen(theme_.accent, hasFocus() ? 2.6 : 2));
    painter.drawRoundedRect(rect, 1.5, 1.5);
}

void HeadGrid::mousePressEvent(QMouseEvent* event) {
    const Hit hit = at(event->position());
    if (hit.row >= 0 && event->button() == Qt::LeftButton) Q_EMIT chosen(hit.row, hit.head);
}

void HeadGrid::mouseDoubleClickEvent(QMouseEvent* event) {
    const Hit hit = at(event->position());
    if (hit.row >= 0 && event->button() == Qt::LeftButton) Q_EMIT opened(hit.row, hit.head);
}

void HeadGrid::mouseMoveEvent(QMouseEvent* event) {
    const Hit hit = at(event->position());
    if (hit.row == pointed_.row && hit.head == pointed_.head) return;
    pointed_ = hit;
    Q_EMIT pointed(hit.row, hit.head);
}

void HeadGrid::leaveEvent(QEvent*) {
    pointed_ = {};
    Q_EMIT pointed(-1, -1);
}

void HeadGrid::contextMenuEvent(QContextMenuEvent* event) {
    const bool mouse = event->reason() == QContextMenuEvent::Mouse;
    const Hit hit = mouse ? at(event->pos()) : Hit{selected_row_, selected_head_};
    if (hit.row < 0) return;
    Q_EMIT chosen(hit.row, hit.head);
    Q_EMIT menu_wanted(hit.row, hit.head, mouse ? event->globalPos() : mapToGlobal(cell(hit.row, hit.head).center()));
}

void HeadGrid::keyPressEvent(QKeyEvent* event) {
    const bool plain = !(event->modifiers() & ~Qt::KeypadModifier);
    const auto columns = static_cast<int>(columns_), rows = static_cast<int>(content_.rows.size());
    switch (plain ? event->key() : 0) {
        case Qt::Key_Left:
            Q_EMIT stepped(0, -1);
            return;
        case Qt::Key_Right:
            Q_EMIT stepped(0, 1);
            return;
        case Qt::Key_Up:
            Q_EMIT stepped(-1, 0);
            return;
        case Qt::Key_Down:
            Q_EMIT stepped(1, 0);
            return;
        case Qt::Key_Home:
            Q_EMIT stepped(0, -columns);
            return;
        case Qt::Key_End:
            Q_EMIT stepped(0, columns);
            return;
        case Qt::Key_PageUp:
            Q_EMIT stepped(-rows, 0);
            return;
        case Qt::Key_PageDown:
            Q_EMIT stepped(rows, 0);
            return;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            Q_EMIT opened(selected_row_, selected_head_);
            return;
        case Qt::Key_Space:
            Q_EMIT mark_wanted();
            return;
        default:
            QWidget::keyPressEvent(event);
    }
}

}  // namespace headscope::widgets
