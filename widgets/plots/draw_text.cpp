// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/draw_text.h"

#include <QFontMetricsF>
#include <QImage>
#include <QPaintEngine>
#include <QTextBoundaryFinder>

#include "widgets/fonts.h"

namespace headscope::widgets {

namespace {

/// The picture of one colour glyph, its line starting at `baseline`.
void draw_picture(QPainter* painter, const QPointF& baseline, const QString& character, const QFont& font) {
    constexpr double kFiner = 4;
    const double size = font.pixelSize();
    const QRectF box(-0.1 * size, -1.1 * size, 1.6 * size, 1.5 * size);
    QImage image((box.size() * kFiner).toSize().expandedTo({1, 1}), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter picture(&image);
    picture.scale(image.width() / box.width(), image.height() / box.height());
    picture.setFont(font);
    picture.drawText(-box.topLeft(), character);
    picture.end();
    painter->drawImage(box.translated(baseline), image);
}

/// Qt leaves colour glyphs out of PDF files, and having met them there no longer draws them anywhere else: so they
/// never get there, their pictures do.
void draw_with_pictures(QPainter* painter, QPointF baseline, const QString& text, const QFont& font) {
    QString plain;
    const auto flush = [&] {
        if (plain.isEmpty()) return;
        painter->drawText(baseline, plain);
        baseline.rx() += text_width(font, plain);
        plain.clear();
    };
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, text);
    qsizetype begin = 0;
    double ascent = 0;
    while (finder.toNextBoundary() > 0) {
        const QString character = text.mid(begin, finder.position() - begin);
        begin = finder.position();
        if (emoji_runs(font, character, ascent).empty()) {
            plain += character;
            continue;
        }
        flush();
        draw_picture(painter, baseline, character, font);
        baseline.rx() += text_width(font, character);
    }
    flush();
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
    double ascent = 0;
    const bool pictures =
        painter->paintEngine()->type() == QPaintEngine::Pdf && !emoji_runs(font, text, ascent).empty();
    if (pictures)
        draw_with_pictures(painter, baseline, text, font);
    else
        painter->drawText(baseline, text);
    painter->restore();
}

}  // namespace headscope::widgets
