// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/link_marks.h"

#include <algorithm>
#include <cmath>

namespace headscope::widgets {
namespace {

constexpr double kMarkDepth = 4;  ///< pixels that a mark reaches into the map

std::vector<std::int64_t> alone(const std::vector<std::int64_t>* partners) {
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; partners && i < partners->size(); ++i)
        if ((*partners)[i] < 0) tokens.push_back(static_cast<std::int64_t>(i));
    return tokens;
}

}  // namespace

LinkMarks::LinkMarks(MapPlot* plot) : QCPLayerable(plot, QStringLiteral("overlay")), plot_(plot) {}

void LinkMarks::set_partners(const std::vector<std::int64_t>* queries, const std::vector<std::int64_t>* keys) {
    queries_ = alone(queries);
    keys_ = alone(keys);
}

void LinkMarks::set_cursor(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    if (query == query_ && key == key_) return;
    query_ = query;
    key_ = key;
    plot_->layer(QStringLiteral("overlay"))->replot();
}

void LinkMarks::draw(QCPPainter* painter) {
    const QRectF rect = plot_->area()->rect();
    const auto edges = [](const QCPAxis* axis, std::int64_t token) {
        const double a = axis->coordToPixel(static_cast<double>(token));
        const double b = axis->coordToPixel(static_cast<double>(token + 1));
        return std::pair(std::floor(std::min(a, b)), std::max(std::ceil(std::max(a, b)), std::floor(a) + 1));
    };
    // Those in sight, from the first one.
    const auto each = [](const std::vector<std::int64_t>& tokens, const QCPRange& shown, auto draw) {
        const auto first = static_cast<std::int64_t>(std::floor(shown.lower));
        for (auto at = std::lower_bound(tokens.begin(), tokens.end(), first); at != tokens.end(); ++at) {
            if (static_cast<double>(*at) >= shown.upper) return;
            draw(*at);
        }
    };
    const QColor colour = theme_.categorical(4);
    each(queries_, plot_->yAxis->range(), [&](std::int64_t token) {
        const auto [top, bottom] = edges(plot_->yAxis, token);
        painter->fillRect(QRectF(rect.left(), top, kMarkDepth, bottom - top).intersected(rect), colour);
    });
    each(keys_, plot_->xAxis->range(), [&](std::int64_t token) {
        const auto [left, right] = edges(plot_->xAxis, token);
        painter->fillRect(QRectF(left, rect.bottom() - kMarkDepth + 1, right - left, kMarkDepth).intersected(rect),
                          colour);
    });
    QPen dotted(theme_.muted);
    dotted.setStyle(Qt::DotLine);
    painter->setPen(dotted);
    if (query_) {
        const double y = plot_->yAxis->coordToPixel(static_cast<double>(*query_) + 0.5);
        if (y >= rect.top() && y <= rect.bottom()) painter->drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y));
    }
    if (key_) {
        const double x = plot_->xAxis->coordToPixel(static_cast<double>(*key_) + 0.5);
        if (x >= rect.left() && x <= rect.right()) painter->drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()));
    }
}

}  // namespace headscope::widgets
