// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/all_heads/head_wall.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr int kWallPadding = 6, kGroupGap = 8;
constexpr int kInset = 3;        ///< before the first tile: room for its outline
constexpr int kWheelStep = 120;  ///< one notch
constexpr float kVeil = 0.78F;   ///< over heads that stand back

int index_of(int size) {
    int best = 0;
    for (int i = 0; i < static_cast<int>(HeadWall::kSizes.size()); ++i)
        if (std::abs(HeadWall::kSizes[static_cast<std::size_t>(i)] - size) <
            std::abs(HeadWall::kSizes[static_cast<std::size_t>(best)] - size))
            best = i;
    return best;
}

int neighbour(int size, int steps) {
    const int last = static_cast<int>(HeadWall::kSizes.size()) - 1;
    return HeadWall::kSizes[static_cast<std::size_t>(std::clamp(index_of(size) + steps, 0, last))];
}

}  // namespace

HeadWall::HeadWall(QWidget* parent) : QAbstractScrollArea(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("wall"));
    setAccessibleName(tr("Thumbnails of all heads"));
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    viewport()->setMouseTracking(true);
}

void HeadWall::set_rows(std::vector<Row> rows) {
    if (rows == rows_) return;
    const auto place = [](const Row& row) { return std::pair(row.label, row.heads); };
    const bool same = std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(),
                                 [&](const Row& a, const Row& b) { return place(a) == place(b); });
    rows_ = std::move(rows);
    if (!same) {
        held_.assign(rows_.size(), {});
        columns_ = 0;
        for (const Row& row : rows_) columns_ = std::max(columns_, row.heads);
    }
    lay_out();
    viewport()->update();
}

void HeadWall::set_strip(std::int64_t row, const std::string& key, std::shared_ptr<const ThumbnailStrip> strip) {
    held_.at(static_cast<std::size_t>(row)) = {key, std::move(strip)};
    viewport()->update();
}

const std::string& HeadWall::key(std::int64_t row) const {
    return held_.at(static_cast<std::size_t>(row)).key;
}

void HeadWall::forget_images() {
    for (Held& held : held_) held = {};
    viewport()->update();
}

void HeadWall::set_theme(const Theme& theme) {
    theme_ = theme;
    viewport()->update();
}

void HeadWall::set_selected(std::int64_t row, std::int64_t head) {
    if (row == selected_row_ && head == selected_head_) return;
    selected_row_ = row;
    selected_head_ = head;
    show_selected();
    viewport()->update();
}

void HeadWall::set_marked(std::vector<std::vector<bool>> marked) {
    if (marked == marked_) return;
    marked_ = std::move(marked);
    viewport()->update();
}

void HeadWall::set_dimmed(std::vector<std::vector<bool>> dimmed) {
    if (dimmed == dimmed_) return;
    dimmed_ = std::move(dimmed);
    viewport()->update();
}

void HeadWall::lay_out() {
    const QFontMetrics metrics(font());
    int widest = metrics.horizontalAdvance(QStringLiteral("00"));
    ruler_.group = rows_.empty() ? 1 : rows_.front().group;
    for (const Row& row : rows_) {
        widest = std::max(widest, metrics.horizontalAdvance(row.label));
        if (row.group != ruler_.group) ruler_.group = 1;
    }
    left_ = widest + 2 * kWallPadding;
    top_ = metrics.height() + kWallPadding;
    gap_ = std::clamp(size_ / 24, 2, 6);
    ruler_.cell = size_ + gap_;
    ruler_.gap = kGroupGap;
    const int wide = columns_ > 0 ? static_cast<int>(ruler_.end(columns_ - 1)) + kInset + kWallPadding : 0;
    const int high = static_cast<int>(rows_.size()) * (size_ + gap_) + kInset + kWallPadding;
    const QSize room = viewport()->size() - QSize(left_, top_);
    horizontalScrollBar()->setRange(0, std::max(0, wide - room.width()));
    horizontalScrollBar()->setPageStep(std::max(1, room.width()));
    horizontalScrollBar()->setSingleStep(24);
    verticalScrollBar()->setRange(0, std::max(0, high - room.height()));
    verticalScrollBar()->setPageStep(std::max(1, room.height()));
    verticalScrollBar()->setSingleStep(24);
}

QRect HeadWall::tile(std::int64_t row, std::int64_t head) const {
    return {left_ + kInset + static_cast<int>(ruler_.begin(head)) - horizontalScrollBar()->value(),
            top_ + kInset + static_cast<int>(row) * (size_ + gap_) - verticalScrollBar()->value(), size_, size_};
}

HeadWall::Hit HeadWall::at(const QPointF& place) const {
    if (place.x() < left_ || place.y() < top_) return {};
    const double y = std::max(0.0, place.y() - top_ - kInset + verticalScrollBar()->value());
    const double x = std::max(0.0, place.x() - left_ - kInset + horizontalScrollBar()->value());
    const auto row = static_cast<std::int64_t>(y / (size_ + gap_));
    const std::int64_t head = ruler_.at(x);
    if (row >= std::ssize(rows_) || head < 0 || head >= rows_[static_cast<std::size_t>(row)].heads) return {};
    return {row, head};
}

std::pair<std::int64_t, std::int64_t> HeadWall::visible_rows() const {
    const int pitch = size_ + gap_, begin = verticalScrollBar()->value();
    const int room = viewport()->height() - top_;
    if (room <= 0 || rows_.empty()) return {0, -1};
    return {begin / pitch, std::min<std::int64_t>(std::ssize(rows_) - 1, (begin + room - 1) / pitch)};
}

bool HeadWall::exact(std::int64_t row) const {
    const auto& strip = held_.at(static_cast<std::size_t>(row)).strip;
    return strip && (strip->images.empty() ||
                     strip->images.front().width() == static_cast<int>(std::lround(size_ * devicePixelRatioF())));
}

void HeadWall::set_size(int size) {
    resize_at(size, QPointF(left_ + (viewport()->width() - left_) / 2.0, top_ + (viewport()->height() - top_) / 2.0));
}

void HeadWall::fit() {
    // As if there were a scroll bar: else one that comes and goes would change the size for ever.
    const int room = width() - 2 * frameWidth() - verticalScrollBar()->sizeHint().width() - left_;
    int fitting = kSizes.front();
    const auto gaps = static_cast<int>(ruler_.group > 1 ? (columns_ - 1) / ruler_.group : 0) * kGroupGap;
    for (const int size : kSizes) {
        const int wide =
            static_cast<int>(columns_) * (size + std::clamp(size / 24, 2, 6)) + gaps + kInset + kWallPadding;
        if (wide <= room) fitting = size;
    }
    set_size(fitting);
}

void HeadWall::resize_at(int size, const QPointF& anchor) {
    size = kSizes[static_cast<std::size_t>(index_of(size))];
    if (size == size_) return;
    // In tiles: gaps hardly differ.
    const double column = (anchor.x() - left_ + horizontalScrollBar()->value()) / ruler_.cell;
    const double row = (anchor.y() - top_ + verticalScrollBar()->value()) / (size_ + gap_);
    size_ = size;
    lay_out();
    horizontalScrollBar()->setValue(static_cast<int>(column * ruler_.cell - (anchor.x() - left_)));
    verticalScrollBar()->setValue(static_cast<int>(row * (size_ + gap_) - (anchor.y() - top_)));
    viewport()->update();
    Q_EMIT size_changed(size_);
    Q_EMIT visible_changed();
}

void HeadWall::show_selected() {
    if (selected_row_ >= std::ssize(rows_)) return;
    const QRect now = tile(selected_row_, selected_head_);
    const QRect room(left_, top_, viewport()->width() - left_, viewport()->height() - top_);
    const auto move = [](QScrollBar* bar, int begin, int end, int from, int to) {
        if (begin < from)
            bar->setValue(bar->value() + begin - from);
        else if (end > to)
            bar->setValue(bar->value() + std::min(end - to, begin - from));
    };
    move(horizontalScrollBar(), now.left(), now.right() + kWallPadding, room.left(), room.right());
    move(verticalScrollBar(), now.top(), now.bottom() + kWallPadding, room.top(), room.bottom());
}

void HeadWall::drop_far_images() {
    // A screen before and after what is seen is kept, so that scrolling back shows it at once.
    const auto [first, last] = visible_rows();
    const std::int64_t screen = std::max<std::int64_t>(1, last - first + 1);
    for (std::int64_t row = 0; row < std::ssize(held_); ++row)
        if (row < first - screen || row > last + screen) held_[static_cast<std::size_t>(row)] = {};
}

void HeadWall::scrollContentsBy(int, int) {
    viewport()->update();
    drop_far_images();
    Q_EMIT visible_changed();
}

void HeadWall::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    lay_out();
    Q_EMIT visible_changed();
}

void HeadWall::paintEvent(QPaintEvent*) {
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme_.background);
    const auto [first, last] = visible_rows();
    const double begin = horizontalScrollBar()->value(), end = begin + viewport()->width() - left_;
    for (std::int64_t row = first; row <= last; ++row) {
        const std::int64_t heads = rows_[static_cast<std::size_t>(row)].heads;
        const std::int64_t from = std::clamp<std::int64_t>(ruler_.at(begin), 0, heads);
        const std::int64_t to = std::clamp<std::int64_t>(ruler_.at(end) + 1, 0, heads);
        for (std::int64_t head = from; head < to; ++head) draw_tile(painter, row, head);
    }
    draw_labels(painter);
}

void HeadWall::draw_tile(QPainter& painter, std::int64_t row, std::int64_t head) const {
    const QRect rect = tile(row, head);
    const Row& about = rows_[static_cast<std::size_t>(row)];
    const auto& strip = held_[static_cast<std::size_t>(row)].strip;
    if (!about.matrix) {
        painter.fillRect(rect, theme_.none);
    } else if (!about.done) {
        painter.fillRect(rect, theme_.background);
        painter.fillRect(rect, QBrush(theme_.grid, Qt::BDiagPattern));
    } else if (strip && head < std::ssize(strip->images)) {
        painter.drawImage(rect, strip->images[static_cast<std::size_t>(head)]);
    } else {
        painter.fillRect(rect, theme_.none);
    }
    const auto is = [at = static_cast<std::size_t>(row), head](const std::vector<std::vector<bool>>& heads) {
        return at < heads.size() && static_cast<std::size_t>(head) < heads[at].size() &&
               heads[at][static_cast<std::size_t>(head)];
    };
    if (is(dimmed_)) {
        QColor veil = theme_.background;
        veil.setAlphaF(kVeil);
        painter.fillRect(rect, veil);
    }
    if (is(marked_)) {
        painter.save();
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.background, 1));
        painter.setBrush(theme_.categorical(4));
        const double side = std::clamp(size_ * 0.2, 7.0, 16.0);
        const QPointF corner = QPointF(rect.topRight()) + QPointF(1, 0);
        painter.drawPolygon(QPolygonF({corner, corner - QPointF(side, 0), corner + QPointF(0, side)}));
        painter.restore();
    }
    if (row != selected_row_ || head != selected_head_) return;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.accent, hasFocus() ? 3 : 2, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
    painter.drawRect(rect.adjusted(-1, -1, 0, 0));
}

void HeadWall::draw_labels(QPainter& painter) const {
    // Over the tiles, so that they are read wherever the wall is scrolled to.
    const QFontMetrics metrics = painter.fontMetrics();
    painter.fillRect(QRect(0, 0, viewport()->width(), top_), theme_.background);
    painter.fillRect(QRect(0, 0, left_, viewport()->height()), theme_.background);
    painter.save();
    painter.setClipRect(QRect(left_, 0, viewport()->width() - left_, top_));
    const double number = metrics.horizontalAdvance(QString::number(columns_)) + 6.0;
    const std::int64_t across = round_stride(number / ruler_.cell);
    for (std::int64_t head = 0; head < columns_; head += across) {
        const QRect place(tile(0, head).left(), 0, size_, top_);
        painter.setPen(head == selected_head_ ? theme_.text : theme_.muted);
        const bool roomy = size_ > metrics.horizontalAdvance(tr("head %1").arg(columns_));
        painter.drawText(place, Qt::AlignCenter | Qt::TextDontClip,
                         roomy ? tr("head %1").arg(head) : QString::number(head));
    }
    painter.setClipRect(QRect(0, top_, left_, viewport()->height() - top_));
    const auto [first, last] = visible_rows();
    for (std::int64_t row = first; row <= last; ++row) {
        const QRect place(0, tile(row, 0).top(), left_ - kWallPadding, size_);
        painter.setPen(row == selected_row_ ? theme_.text : theme_.muted);
        painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip,
                         rows_[static_cast<std::size_t>(row)].label);
    }
    painter.restore();
}

void HeadWall::wheelEvent(QWheelEvent* event) {
    if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier)) {
        const QPoint turn = event->angleDelta();
        const bool across = event->modifiers() & Qt::ShiftModifier;
        QScrollBar* bar = across ? horizontalScrollBar() : verticalScrollBar();
        bar->setValue(bar->value() - (turn.y() != 0 ? turn.y() : turn.x()));
    } else {
        turned_ += event->angleDelta().y();
        const int steps = turned_ / kWheelStep;
        turned_ -= steps * kWheelStep;
        if (steps != 0) resize_at(neighbour(size_, steps), event->position());
    }
    event->accept();
}

void HeadWall::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    holding_ = true;
    dragging_ = false;
    pressed_ = event->position().toPoint();
    scrolled_ = {horizontalScrollBar()->value(), verticalScrollBar()->value()};
}

void HeadWall::mouseMoveEvent(QMouseEvent* event) {
    const QPoint moved = event->position().toPoint() - pressed_;
    if (holding_ && !dragging_ && moved.manhattanLength() >= QApplication::startDragDistance()) {
        dragging_ = true;
        viewport()->setCursor(Qt::ClosedHandCursor);
    }
    if (dragging_) {
        horizontalScrollBar()->setValue(scrolled_.x() - moved.x());
        verticalScrollBar()->setValue(scrolled_.y() - moved.y());
        return;
    }
    const Hit hit = at(event->position());
    if (hit.row == pointed_.row && hit.head == pointed_.head) return;
    pointed_ = hit;
    Q_EMIT pointed(hit.row, hit.head);
}

void HeadWall::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    const bool click = holding_ && !dragging_;
    holding_ = dragging_ = false;
    viewport()->unsetCursor();
    const Hit hit = at(event->position());
    if (click && hit.row >= 0) Q_EMIT chosen(hit.row, hit.head);
}

void HeadWall::mouseDoubleClickEvent(QMouseEvent* event) {
    const Hit hit = at(event->position());
    if (hit.row >= 0 && event->button() == Qt::LeftButton) Q_EMIT opened(hit.row, hit.head);
}

bool HeadWall::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::Leave) {
        pointed_ = {};
        Q_EMIT pointed(-1, -1);
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void HeadWall::keyPressEvent(QKeyEvent* event) {
    const bool plain = !(event->modifiers() & ~(Qt::KeypadModifier | Qt::ShiftModifier));
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
            Q_EMIT stepped(0, -static_cast<int>(columns_));
            return;
        case Qt::Key_End:
            Q_EMIT stepped(0, static_cast<int>(columns_));
            return;
        case Qt::Key_PageUp:
            verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepSub);
            return;
        case Qt::Key_PageDown:
            verticalScrollBar()->triggerAction(QAbstractSlider::SliderPageStepAdd);
            return;
        case Qt::Key_Plus:
        case Qt::Key_Equal:
            set_size(neighbour(size_, 1));
            return;
        case Qt::Key_Minus:
            set_size(neighbour(size_, -1));
            return;
        case Qt::Key_0:
            Q_EMIT fit_wanted();
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
