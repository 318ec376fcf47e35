// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/thumbnail_wall.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "widgets/training/moment_maker.h"

namespace headscope::widgets {
namespace {

constexpr int kLeastLabelRoom = 30, kTop = 16;  ///< room for labels of rows and columns

}  // namespace

ThumbnailWall::ThumbnailWall(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    setObjectName(QStringLiteral("thumbnail_wall"));
    setAccessibleName(tr("Maps of all heads at this step"));
}

void ThumbnailWall::set(const QImage& wall, const QStringList& labels, const QStringList& titles, std::int64_t heads,
                        const QString& note) {
    wall_ = wall;
    if (labels != labels_) {
        const QFontMetrics metrics(small_font());
        left_ = kLeastLabelRoom;
        for (const QString& label : labels) left_ = std::max(left_, metrics.horizontalAdvance(label) + 8);
    }
    labels_ = labels;
    titles_ = titles;
    heads_ = heads;
    note_ = note;
    setAccessibleDescription(head_words(site_, head_));
    update();
}

void ThumbnailWall::set_chosen(std::int64_t site, std::int64_t head) {
    if (site == site_ && head == head_) return;
    site_ = site;
    head_ = head;
    setAccessibleDescription(head_words(site, head));
    update();
}

QString ThumbnailWall::head_words(std::int64_t site, std::int64_t head) const {
    return site < titles_.size() ? tr("%1, head %2").arg(titles_[site]).arg(head) : QString();
}

QFont ThumbnailWall::small_font() const {
    QFont small = font();
    small.setPointSizeF(std::max(6.5, small.pointSizeF() * 0.82));
    return small;
}

void ThumbnailWall::set_theme(const Theme& theme) {
    theme_ = theme;
    update();
}

QSize ThumbnailWall::room() const {
    return (QSizeF(width() - left_ - 2, height() - kTop - 2) * devicePixelRatioF()).toSize().expandedTo({8, 8});
}

QRectF ThumbnailWall::area() const {
    QSizeF size = QSizeF(wall_.size()) / devicePixelRatioF();
    size = size.boundedTo(QSizeF(width() - left_, height() - kTop));
    return {QPointF(left_, kTop), size};
}

void ThumbnailWall::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.background);
    const QFont small = small_font();
    painter.setFont(small);
    painter.setPen(theme_.muted);
    if (wall_.isNull()) {
        painter.drawText(rect().adjusted(8, 8, -8, -8), Qt::AlignCenter | Qt::TextWordWrap, note_);
        return;
    }
    const QRectF area = this->area();
    painter.setRenderHint(QPainter::SmoothPixmapTransform, area.size() != QSizeF(wall_.size()) / devicePixelRatioF());
    painter.drawImage(area, wall_);
    const QFontMetricsF metrics(small);
    double until = -1;
    for (std::int64_t s = 0; s < sites(); ++s) {
        const QRectF tile = wall_tile(area, sites(), heads_, s, 0);
        if (tile.center().y() - metrics.height() / 2 < until) continue;
        until = tile.center().y() + metrics.height() / 2;
        painter.setPen(s == site_ ? theme_.text : theme_.muted);
        painter.drawText(QRectF(0, tile.center().y() - 10, left_ - 5, 20), Qt::AlignRight | Qt::AlignVCenter,
                         labels_[s]);
    }
    until = -1;
    for (std::int64_t h = 0; h < heads_; ++h) {
        const QRectF tile = wall_tile(area, sites(), heads_, 0, h);
        const QString text = QString::number(h);
        const double half = metrics.horizontalAdvance(text) / 2;
        if (tile.center().x() - half < until) continue;
        until = tile.center().x() + half + 4;
        painter.setPen(h == head_ ? theme_.text : theme_.muted);
        painter.drawText(QRectF(tile.center().x() - 20, 0, 40, kTop - 2), Qt::AlignHCenter | Qt::AlignBottom, text);
    }
    if (site_ < sites() && head_ < heads_) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(theme_.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(wall_tile(area, sites(), heads_, site_, head_).adjusted(-1, -1, 1, 1));
    }
}

bool ThumbnailWall::find(const QPointF& place, std::int64_t& site, std::int64_t& head) const {
    if (wall_.isNull()) return false;
    const QRectF area = this->area();
    for (site = 0; site < sites(); ++site)
        for (head = 0; head < heads_; ++head)
            if (wall_tile(area, sites(), heads_, site, head).adjusted(-1, -1, 1, 1).contains(place)) return true;
    return false;
}

void ThumbnailWall::mousePressEvent(QMouseEvent* event) {
    std::int64_t site = 0, head = 0;
    if (event->button() == Qt::LeftButton && find(event->position(), site, head)) Q_EMIT chosen(site, head);
}

void ThumbnailWall::mouseMoveEvent(QMouseEvent* event) {
    std::int64_t site = 0, head = 0;
    setToolTip(find(event->position(), site, head) ? head_words(site, head) : QString());
}

void ThumbnailWall::keyPressEvent(QKeyEvent* event) {
    std::int64_t site = site_, head = head_;
    switch (event->modifiers() & ~Qt::KeypadModifier ? 0 : event->key()) {
        case Qt::Key_Left:
            --head;
            break;
        case Qt::Key_Right:
            ++head;
            break;
        case Qt::Key_Up:
            --site;
            break;
        case Qt::Key_Down:
            ++site;
            break;
        default:
            QWidget::keyPressEvent(event);
            return;
    }
    if (sites() > 0 && heads_ > 0)
        Q_EMIT chosen(std::clamp<qint64>(site, 0, sites() - 1), std::clamp<qint64>(head, 0, heads_ - 1));
}

void ThumbnailWall::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    Q_EMIT resized();
}

}  // namespace headscope::widgets
