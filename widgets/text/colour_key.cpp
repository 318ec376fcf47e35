// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/colour_key.h"

#include <QPainter>
#include <algorithm>

#include "widgets/plots/colour_bar.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/ticks.h"

namespace headscope::widgets {
namespace {

constexpr int kBarWidth = 150, kLeastBar = 80, kBarHeight = 9, kKeyGap = 8, kEdge = 24, kZeroBox = 14;

}  // namespace

QString scale_name(figures::ScaleKind kind) {
    switch (kind) {
        case figures::ScaleKind::square_root:
            return QObject::tr("square root");
        case figures::ScaleKind::logarithmic:
            return QObject::tr("logarithmic");
        case figures::ScaleKind::symmetric_log:
            return QObject::tr("symmetric logarithmic");
        case figures::ScaleKind::linear:
            break;
    }
    return QObject::tr("linear");
}

ColourKey::ColourKey(QWidget* parent) : QWidget(parent), theme_(make_theme(false)) {
    setObjectName(QStringLiteral("colour_key"));
    setAccessibleName(tr("Color scale"));
}

void ColourKey::set_scale(const figures::ColourScale& scale, const Theme& theme) {
    scale_ = scale;
    theme_ = theme;
    setAccessibleDescription(tr("%1, %2, from %3 to %4")
                                 .arg(QString::fromStdString(scale.label), scale_name(scale.scale),
                                      number_label(scale.minimum), number_label(scale.maximum)));
    if (scale.zero_apart) setAccessibleDescription(tr("%1; exactly 0 apart").arg(accessibleDescription()));
    setToolTip(accessibleDescription());
    setMinimumWidth(sizeHint().width() - kBarWidth + kLeastBar);
    updateGeometry();
    update();
}

int ColourKey::label_width() const {
    const QString label = QString::fromStdString(scale_.label);
    return std::max(fontMetrics().horizontalAdvance(label), fontMetrics().horizontalAdvance(scale_name(scale_.scale)));
}

/// Width of the box of zeros with the gap after it.
int ColourKey::zero_width() const {
    return scale_.zero_apart ? std::max(kZeroBox, fontMetrics().horizontalAdvance(zero_label())) + kKeyGap + kEdge : 0;
}

QSize ColourKey::sizeHint() const {
    return {label_width() + kKeyGap + zero_width() + kBarWidth + 2 * kEdge, std::max(2 * fontMetrics().height(), 28)};
}

void ColourKey::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const int label = label_width(), line = fontMetrics().height();
    const int top = (height() - 2 * line) / 2;
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QRect(0, top, label, line), Qt::AlignRight | Qt::AlignVCenter,
                     QString::fromStdString(scale_.label));
    painter.setPen(theme_.muted);
    painter.drawText(QRect(0, top + line, label, line), Qt::AlignRight | Qt::AlignVCenter, scale_name(scale_.scale));

    if (scale_.zero_apart) {
        const int room = zero_width() - kKeyGap;
        const QRect box(label + kKeyGap + (room - kZeroBox) / 2, top + (line - kBarHeight) / 2 + 1, kZeroBox,
                        kBarHeight);
        painter.fillRect(box, theme_.zero);
        painter.setPen(theme_.line);
        painter.drawRect(box.adjusted(0, 0, -1, -1));
        painter.setPen(palette().color(QPalette::WindowText));
        painter.drawText(QRect(label + kKeyGap, top + line, room, line), Qt::AlignCenter, zero_label());
    }
    const int left = label + kKeyGap + zero_width() + kEdge;
    const QRect bar(left, top + (line - kBarHeight) / 2 + 1, std::clamp(width() - left - kEdge, kLeastBar, kBarWidth),
                    kBarHeight);
    const auto& table = colour_table(scale_.map, theme_);
    QImage image(kMapColours, 1, QImage::Format_RGB32);
    for (int i = 0; i < kMapColours; ++i) image.setPixel(i, 0, table[static_cast<std::size_t>(i)]);
    painter.drawImage(bar, image);
    painter.setPen(theme_.line);
    painter.drawRect(bar.adjusted(0, 0, -1, -1));

    // The ends first, then what fits between them.
    std::vector<QRect> taken;
    const auto offer = [&](double value) {
        const QString text = number_label(QString::number(value, 'g', 3).toDouble());
        const int width = fontMetrics().horizontalAdvance(text);
        const int x = bar.left() + static_cast<int>(fraction(scale_, value) * (bar.width() - 1));
        const QRect box(x - width / 2, top + line, width, line);
        for (const QRect& other : taken)
            if (other.adjusted(-6, 0, 6, 0).intersects(box)) return;
        taken.push_back(box);
        painter.drawLine(x, bar.bottom(), x, bar.bottom() + 3);
        painter.drawText(box, Qt::AlignCenter, text);
    };
    painter.setPen(palette().color(QPalette::WindowText));
    if (!(scale_.maximum > scale_.minimum)) return offer(scale_.minimum);
    offer(scale_.maximum);
    offer(scale_.minimum);
    for (const double value : round_ticks(scale_.scale, scale_.minimum, scale_.maximum, 4)) offer(value);
}

}  // namespace headscope::widgets
