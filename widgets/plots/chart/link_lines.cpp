// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/chart/link_lines.h"

#include <QPainterPath>
#include <algorithm>

#include "widgets/fonts.h"
#include "widgets/plots/axis_layout.h"

namespace headscope::widgets {
namespace {

constexpr double kThinnest = 1.0, kThickest = 9.0;  // units, of weights 0 and 1
constexpr float kFaintest = 0.12F;                  // opacity of weight 0
constexpr double kMargin = 2;                       // units between the words and the lines

}  // namespace

LinkTokens::LinkTokens(const figures::Links& links, double points, bool token_labels) {
    const QFont font = figure_font(points);
    const auto fill = [&](const std::vector<std::string>& words, std::int64_t first, const std::string& title,
                          QStringList& column, double& width) {
        width = text_width(font, printable(title));
        for (std::size_t i = 0; i < words.size(); ++i) {
            column += token_labels ? printable(words[i]) : QString::number(first + static_cast<qint64>(i));
            width = std::max(width, text_width(font, column.back()));
        }
        width += 2 * kTickPadding;
    };
    fill(links.left, links.first_left, links.left_label, left, left_width);
    fill(links.right, links.first_right, links.right_label, right, right_width);
}

LinkLines::LinkLines(QCustomPlot* plot, const QRectF& area, const figures::Links& links, const Theme& theme)
    : QCPLayerable(plot), area_(area), links_(links), theme_(theme) {}

void LinkLines::applyDefaultAntialiasingHint(QCPPainter* painter) const {
    painter->setAntialiasing(true);
}

void LinkLines::draw(QCPPainter* painter) {
    const auto rows = static_cast<double>(std::max({links_.left.size(), links_.right.size(), std::size_t{1}}));
    const double row = area_.height() / rows;
    const auto middle = [&](std::int32_t i) { return area_.top() + row * (static_cast<double>(i) + 0.5); };
    painter->setBrush(Qt::NoBrush);
    for (const auto& link : links_.links) {
        const float weight = std::clamp(link.weight, 0.0F, 1.0F);
        QColor colour = theme_.categorical(link.colour);
        colour.setAlphaF(kFaintest + (1 - kFaintest) * weight);
        painter->setPen(QPen(colour, kThinnest + (kThickest - kThinnest) * static_cast<double>(weight), Qt::SolidLine,
                             Qt::FlatCap));
        const QPointF from(area_.left() + kMargin, middle(link.left)), to(area_.right() - kMargin, middle(link.right));
        const double bend = (to.x() - from.x()) * 0.4;
        QPainterPath path(from);
        path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to);
        painter->drawPath(path);
    }
}

}  // namespace headscope::widgets
