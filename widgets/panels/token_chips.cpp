// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/token_chips.h"

#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>

namespace headscope::widgets {
namespace {

constexpr std::size_t kSlice = 1500;  // about 5 ms of measuring text
constexpr int kGap = 2, kPadding = 3;

}  // namespace

TokenChips::TokenChips(QWidget* parent) : QAbstractScrollArea(parent), theme_(make_theme(false)) {
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Tokens"));
    setFrameShape(QFrame::NoFrame);
    timer_.setInterval(0);
    connect(&timer_, &QTimer::timeout, this, &TokenChips::lay_out_more);
}

void TokenChips::set_chips(std::vector<TokenPreview::Chip> chips) {
    chips_ = std::move(chips);
    begin_layout();
}

void TokenChips::set_theme(const Theme& theme) {
    theme_ = theme;
    viewport()->update();
}

int TokenChips::row_height() const {
    return fontMetrics().height() + 4 + kGap;
}

void TokenChips::begin_layout() {
    places_.clear();
    x_ = row_ = 0;
    timer_.start();
    lay_out_more();
}

void TokenChips::lay_out_more() {
    const QFontMetrics metrics = fontMetrics();
    const int across = viewport()->width();
    for (std::size_t n = 0; n < kSlice && places_.size() < chips_.size(); ++n) {
        const TokenPreview::Chip& chip = chips_[places_.size()];
        const int width = std::min(metrics.horizontalAdvance(chip.text) + 2 * kPadding, std::max(20, across));
        if (x_ > 0 && x_ + width > across) {
            x_ = 0;
            ++row_;
        }
        places_.push_back({x_, row_, width});
        x_ += width + (chip.joined ? 0 : kGap);
    }
    if (places_.size() == chips_.size()) timer_.stop();
    const int height = chips_.empty() ? 0 : (row_ + 1) * row_height();
    verticalScrollBar()->setRange(0, std::max(0, height - viewport()->height()));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(row_height());
    viewport()->update();
}

void TokenChips::paintEvent(QPaintEvent*) {
    QPainter painter(viewport());
    painter.setRenderHint(QPainter::Antialiasing);
    const int top = verticalScrollBar()->value(), height = row_height();
    const int first_row = top / height, last_row = (top + viewport()->height()) / height;
    const auto begin = std::lower_bound(places_.begin(), places_.end(), first_row,
                                        [](const Place& place, int row) { return place.row < row; });
    for (auto at = begin; at != places_.end() && at->row <= last_row; ++at) {
        const TokenPreview::Chip& chip = chips_[static_cast<std::size_t>(at - places_.begin())];
        const QRectF box(at->x + 0.5, at->row * height - top + 0.5, at->width - 1, height - kGap - 1);
        painter.setPen(chip.special ? QPen(theme_.accent) : QPen(Qt::NoPen));
        painter.setBrush(chip.special ? QBrush(Qt::NoBrush) : QBrush(theme_.none));
        painter.drawRoundedRect(box, 3, 3);
        painter.setPen(chip.special ? theme_.accent : theme_.text);
        painter.drawText(box.adjusted(kPadding - 1, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, chip.text);
    }
}

void TokenChips::resizeEvent(QResizeEvent* event) {
    QAbstractScrollArea::resizeEvent(event);
    begin_layout();
}

int TokenChips::chip_at(const QPoint& place) const {
    const int row = (place.y() + verticalScrollBar()->value()) / row_height();
    for (auto at = std::lower_bound(places_.begin(), places_.end(), row,
                                    [](const Place&p, int wanted) { return p.row < wanted; });
         at != places_.end() && at->row == row; ++at)
        if (place.x() >= at->x && place.x() < at->x + at->width) return static_cast<int>(at - places_.begin());
    return -1;
}

bool TokenChips::viewportEvent(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int chip = chip_at(help->pos());
        if (chip >= 0)
            QToolTip::showText(help->globalPos(), chips_[static_cast<std::size_t>(chip)].hint, this);
        else
            QToolTip::hideText();
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

}  // namespace headscope::widgets
