// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/upright_scale.h"

#include <QPainter>

#include "widgets/fonts.h"
#include "widgets/plots/colour_bar.h"
#include "widgets/plots/colour_map.h"

namespace headscope::widgets {
namespace {

constexpr int kUprightBar = 14, kUprightTick = 4, kUprightGap = 4, kUprightEdge = 6;
constexpr double kUnitsPerPixel = kUnitsPerInch / 96.0, kTickPoints = 9;

}  // namespace

UprightScale::UprightScale(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
    setAccessibleName(tr("Color scale"));
}

void UprightScale::set_look(const figures::ColourScale& scale, const Theme& theme) {
    scale_ = scale;
    theme_ = theme;
    setToolTip(QString::fromStdString(scale.label));
    updateGeometry();
    update();
}

void UprightScale::set_span(int top, int bottom) {
    if (top == top_ && bottom == bottom_) return;
    top_ = top;
    bottom_ = bottom;
    update();
}

QSize UprightScale::sizeHint() const {
    int widest = scale_.zero_apart ? fontMetrics().horizontalAdvance(zero_label()) : 0;
    for (const auto& tick : bar_ticks(scale_, 300 * kUnitsPerPixel, kTickPoints))
        widest = std::max(widest, fontMetrics().horizontalAdvance(tick.second));
    return {kUprightEdge + kUprightBar + kUprightTick + kUprightGap + widest + kUprightGap + fontMetrics().height() +
                kUprightEdge,
            120};
}

void UprightScale::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.background);
    const QFontMetrics metrics = fontMetrics();
    const int bottom = bottom_ > top_ ? bottom_ : height() - 8;
    const int zeros = scale_.zero_apart ? metrics.height() * 3 / 2 : 0;
    const QRect bar(kUprightEdge, top_, kUprightBar, bottom - top_ - zeros);
    if (bar.height() < 20) return;
    QImage image(1, kMapColours, QImage::Format_RGB32);
    const ColourTable& table = colour_table(scale_.map, theme_);
    for (int i = 0; i < kMapColours; ++i) image.setPixel(0, kMapColours - 1 - i, table[static_cast<std::size_t>(i)]);
    painter.drawImage(bar, image);
    painter.setPen(theme_.line);
    painter.drawRect(bar);
    int widest = 0;
    for (const auto& [at, label] : bar_ticks(scale_, bar.height() * kUnitsPerPixel, kTickPoints)) {
        const int y = bar.top() + qRound((1 - at) * bar.height());
        painter.setPen(theme_.line);
        painter.drawLine(bar.right() + 1, y, bar.right() + kUprightTick, y);
        painter.setPen(theme_.text);
        const int width = metrics.horizontalAdvance(label);
        painter.drawText(
            QRect(bar.right() + kUprightTick + kUprightGap, y - metrics.height() / 2, width + 1, metrics.height()),
            Qt::AlignLeft | Qt::AlignVCenter, label);
        widest = std::max(widest, width);
    }
    if (zeros > 0) {
        const QRect box(bar.left(), bottom - metrics.height(), bar.width(), metrics.height());
        painter.fillRect(box, theme_.zero);
        painter.setPen(theme_.line);
        painter.drawRect(box);
        painter.setPen(theme_.text);
        widest = std::max(widest, metrics.horizontalAdvance(zero_label()));
        painter.drawText(QRect(box.right() + kUprightTick + kUprightGap, box.top(), widest + 1, box.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, zero_label());
    }
    // Beside the bar's middle, or as near to it as the whole label allows.
    const int most = std::max(0, height() - 8);
    const QString label = metrics.elidedText(QString::fromStdString(scale_.label), Qt::ElideRight, most);
    const int length = std::min(most, metrics.horizontalAdvance(label) + 2), half = (length + 1) / 2;
    const int middle = std::max(half, std::min(bar.center().y(), height() - half));
    painter.translate(bar.right() + kUprightTick + kUprightGap + widest + kUprightGap + metrics.height() / 2.0, middle);
    painter.rotate(-90);
    painter.drawText(QRect(-length / 2, -metrics.height() / 2, length, metrics.height()), Qt::AlignCenter, label);
}

}  // namespace headscope::widgets
