// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/text_chips.h"

#include <QFontMetricsF>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/figures/token_text.h"
#include "widgets/fonts.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/draw_text.h"
#include "widgets/plots/map/cell_image.h"

namespace headscope::widgets {
namespace {

constexpr double kPadding = 2, kGap = 1.5, kRadius = 4;  // units
constexpr double kLine = 1.24;                           // of a line's height
constexpr int kMostBlankLines = 2;

/// A line may begin with this token: it is not in the middle of a word.
bool begins_word(const figures::TextBlock::Chip& chip) {
    return chip.space_before || chip.outlined || chip.breaks_before > 0 || chip.text.starts_with(' ') ||
           chip.text.starts_with(figures::stand_in(' '));
}

}  // namespace

std::vector<PlacedChip> place_chips(const figures::TextBlock& block, const QFont& font, double width) {
    std::vector<PlacedChip> placed;
    const double height = text_height(font), line = height * kLine, space = text_width(font, " ");
    double x = 0, y = 0;
    const auto breaks = [&](int lines) {
        for (int i = 0; i < std::min(lines, kMostBlankLines); ++i) {
            y += line;
            x = 0;
        }
    };
    std::vector<double> widths;
    for (const auto& chip : block.chips) {
        QString text = printable(chip.text);
        double wide = text_width(font, text) + 2 * kPadding;
        if (wide > width) {
            text = QFontMetricsF(font).elidedText(text, Qt::ElideMiddle, width - 2 * kPadding);
            wide = std::min(width, text_width(font, text) + 2 * kPadding);
        }
        placed.push_back({QRectF(), text, &chip});
        widths.push_back(wide);
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
        const auto& chip = *placed[i].chip;
        breaks(chip.breaks_before);
        if (chip.space_before && x > 0) x += space;
        const double wide = widths[i];
        // The tokens of a word stay together where a line has room for all of them.
        double word = wide;
        for (std::size_t k = i + 1; k < placed.size() && begins_word(chip) && !begins_word(*placed[k].chip) &&
                                    placed[k - 1].chip->breaks_after == 0 && word <= width;
             ++k) {
            word += kGap + widths[k];
        }
        if (x > 0 && x + (word <= width ? word : wide) > width) breaks(1);
        placed[i].rect = QRectF(x, y, wide, height * 1.06);
        x += wide + kGap;
        breaks(chip.breaks_after);
    }
    return placed;
}

TextChips::TextChips(QCustomPlot* plot, std::vector<PlacedChip> chips, const figures::ColourScale& scale,
                     const Theme& theme, double points)
    : QCPLayerable(plot), chips_(std::move(chips)), scale_(scale), theme_(theme), points_(points) {}

void TextChips::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void TextChips::draw(QCPPainter* painter) {
    const auto& table = colour_table(scale_.map, theme_);
    const QFont font = figure_font(points_);
    for (const auto& placed : chips_) {
        const auto& values = placed.chip->values;
        const QRectF& rect = placed.rect;
        QPainterPath outline;
        outline.addRoundedRect(rect, kRadius, kRadius);
        QColor below = theme_.background;
        const double slice = rect.width() / static_cast<double>(std::max<std::size_t>(1, values.size()));
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::isnan(values[i])) continue;
            const QColor colour(CellColours{scale_, table, 0, theme_.zero.rgb()}.of(values[i]));
            if (i == values.size() / 2) below = colour;
            QPainterPath part;
            part.addRect(QRectF(rect.left() + slice * static_cast<double>(i), rect.top(), slice, rect.height()));
            painter->fillPath(values.size() == 1 ? outline : outline.intersected(part), colour);
        }
        painter->setBrush(Qt::NoBrush);
        if (placed.chip->outlined || placed.chip->stressed) {
            painter->setPen(
                QPen(placed.chip->stressed ? theme_.accent : theme_.muted, placed.chip->stressed ? 3.2 : 1.6));
            painter->drawPath(outline);
        }
        const bool coloured = below != theme_.background;
        draw_text(painter, rect.adjusted(kPadding, 0, -kPadding, 0), placed.text, font,
                  coloured ? readable_on(below) : theme_.text, Qt::AlignLeft | Qt::AlignVCenter, false);
    }
}

}  // namespace headscope::widgets
