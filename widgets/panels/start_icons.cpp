// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/start_icons.h"

#include <QPainter>
#include <QPainterPath>

namespace headscope::widgets {
namespace {

/// Layers on each other.
void draw_checkpoint(QPainter& painter, const QColor& colour) {
    for (int layer = 0; layer < 4; ++layer) {
        QColor shade = colour;
        shade.setAlphaF(1.0F - 0.2F * static_cast<float>(layer));
        painter.setBrush(shade);
        painter.drawRoundedRect(QRectF(5, 5.5 + 6.5 * layer, 26, 5), 1.5, 1.5);
    }
}

/// The lower triangle of a map, a column and the diagonal strong.
void draw_analysis(QPainter& painter, const QColor& colour) {
    constexpr int kCells = 5;
    for (int row = 0; row < kCells; ++row)
        for (int column = 0; column <= row; ++column) {
            const bool strong = column == 0 || column == row;
            QColor shade = colour;
            shade.setAlphaF(strong ? 1.0F : 0.35F);
            painter.setBrush(shade);
            painter.drawRect(QRectF(5 + 5.3 * column, 5 + 5.3 * row, 4.7, 4.7));
        }
}

void draw_sample(QPainter& painter, const QColor& colour) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colour, 2.2));
    painter.drawEllipse(QRectF(5, 5, 26, 26));
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawPolygon(QPolygonF({{14.5, 11.5}, {25, 18}, {14.5, 24.5}}));
}

/// A loss that falls.
void draw_training(QPainter& painter, const QColor& colour) {
    painter.setBrush(Qt::NoBrush);
    QColor axis = colour;
    axis.setAlphaF(0.45F);
    painter.setPen(QPen(axis, 2));
    painter.drawPolyline(QPolygonF({{6, 5}, {6, 30}, {31, 30}}));
    QPainterPath loss(QPointF(9, 7));
    loss.cubicTo(QPointF(12, 22), QPointF(18, 24), QPointF(30, 25.5));
    painter.setPen(QPen(colour, 2.6, Qt::SolidLine, Qt::RoundCap));
    painter.drawPath(loss);
}

}  // namespace

QIcon start_icon(StartIcon which, const QColor& colour) {
    constexpr int kFiner = 2;  // for screens of more pixels
    QPixmap picture(kStartIcon * kFiner, kStartIcon * kFiner);
    picture.setDevicePixelRatio(kFiner);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    switch (which) {
        case StartIcon::checkpoint:
            draw_checkpoint(painter, colour);
            break;
        case StartIcon::analysis:
            draw_analysis(painter, colour);
            break;
        case StartIcon::sample:
            draw_sample(painter, colour);
            break;
        case StartIcon::training:
            draw_training(painter, colour);
            break;
    }
    return QIcon(picture);
}

}  // namespace headscope::widgets
