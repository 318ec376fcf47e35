// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/draw_text.h"

#include <QFontMetricsF>
#include <QImage>
#include <QPaintEngine>

#include "widgets/fonts.h"

namespace headscope::widgets {

namespace {

/// Qt leaves colour glyphs out of PDF files: put their pictures where they belong.
void draw_emoji(QPainter* painter, const QPointF& baseline, const QString& text, const QFont& font) {
    constexpr double kFiner = 4;
    double ascent = 0;
    for (const auto& run : emoji_runs(font, text, ascent)) {
        // Not the run's own bounds: those of colour glyphs change once they have been drawn.
        const double size = font.pixelSize();
        const auto places = run.positions();
        if (places.isEmpty()) continue;
        const QRectF box(QPointF(places.front().x() - 0.1 * size, places.front().y() - 1.1 * size),
                         QPointF(places.back().x() + 1.5 * size, places.front().y() + 0.4 * size));
        QImage image((box.size() * kFiner).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
        image.fill(Qt::transparent);
        QPainter picture(&image);
        picture.scale(image.width() / box.width(), image.height() / box.height());
        picture.translate(-box.topLeft());
        picture.drawGlyphRun({0, 0}, run);
        picture.end();
        painter->drawImage(box.translated(baseline - QPointF(0, ascent)), image);
    }
}

}  // namespace

void draw_text(QPainter* painter, const QRectF& rect, const QString& text, const QFont& font, const QColor& colour,
               Qt::Alignment alignment, bool turned) {
    if (text.isEmpty()) return;
    painter->save();
    painter->setFont(font);
    painter->setPen(colour);
    QRectF box = rect;
    if (turned) {
        painter->translate(rect.left(), rect.bottom());
        painter->rotate(-90);
        box = QRectF(0, 0, rect.height(), rect.width());
    }
    const QFontMetricsF metrics(font);
    const double width = text_width(font, text);
    double x = box.left();
    if (alignment & Qt::AlignHCenter) x += (box.width() - width) / 2;
    if (alignment & Qt::AlignRight) x += box.width() - width;
    double y = box.top();
    const double height = metrics.ascent() + metrics.descent();
    if (alignment & Qt::AlignVCenter) y += (box.height() - height) / 2;
    if (alignment & Qt::AlignBottom) y += box.height() - height;
    const QPointF baseline(x, y + metrics.ascent());
    // First: drawing colour glyphs settles their metrics, which the file's font table repeats.
    if (painter->paintEngine()->type() == QPaintEngine::Pdf) draw_emoji(painter, baseline, text, font);
    painter->drawText(baseline, text);
    painter->restore();
}

}  // namespace headscope::widgets
