// SPDX-License-Identifier: GPL-3.0-or-later
// How a MapPlot draws: tiles, coarser ones in their place, limits, crosshairs, the region.
#include <QElapsedTimer>
#include <algorithm>
#include <cmath>

#include "widgets/plots/map/map_plot.h"

namespace headscope::widgets {
namespace {

constexpr qint64 kColouring = 5;  ///< ms of a frame for colouring new tiles; what is left follows in the next

}  // namespace

std::vector<maps::TileKey> MapPlot::visible_tiles(std::int64_t around) const {
    std::vector<maps::TileKey> keys;
    const maps::Cells cells = shown();
    if (cells.queries() == 0 || cells.keys() == 0 || content_.map == 0) return keys;
    const int at = level();
    const std::int64_t side = maps::kTileSize << at;
    const auto last_of = [side, around](std::int64_t end, std::int64_t size) {
        return std::min((end - 1) / side + around, (size - 1) / side);
    };
    const std::int64_t last_row = last_of(cells.q_end, content_.queries),
                       last_column = last_of(cells.k_end, content_.keys);
    for (std::int64_t row = std::max<std::int64_t>(0, cells.q_begin / side - around); row <= last_row; ++row) {
        for (std::int64_t column = std::max<std::int64_t>(0, cells.k_begin / side - around); column <= last_column;
             ++column)
            keys.push_back({content_.map, at, row, column});
    }
    // From the middle outwards.
    const double middle_row = static_cast<double>(cells.q_begin + cells.q_end) / static_cast<double>(2 * side) - 0.5;
    const double middle_column = static_cast<double>(cells.k_begin + cells.k_end) / static_cast<double>(2 * side) - 0.5;
    const auto distance = [&](const maps::TileKey& key) {
        return std::hypot(static_cast<double>(key.row) - middle_row, static_cast<double>(key.column) - middle_column);
    };
    std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    return keys;
}

QImage MapPlot::coloured(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) const {
    QImage image(static_cast<int>(columns), static_cast<int>(rows), QImage::Format_RGB32);
    for (int y = 0; y < image.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
        const float* row = values.data() + static_cast<std::ptrdiff_t>(y) * image.width();
        for (int x = 0; x < image.width(); ++x) line[x] = lookup_(row[x]);
    }
    return image;
}

const QImage* MapPlot::image_of(const maps::TileKey& key, bool colour) {
    if (const QImage* image = images_.object(key)) return image;
    const auto tile = colour && service_ ? service_->find(key) : nullptr;
    if (!tile) return nullptr;
    const auto& values = pooling_ == figures::Pooling::maximum ? tile->extreme : tile->mean;
    auto* image = new QImage(coloured(tile->rows, tile->columns, values));
    images_.insert(key, image, std::max<qsizetype>(1, image->sizeInBytes() >> 10));
    return images_.object(key);
}

QRect MapPlot::on_screen(const maps::Cells& cells) const {
    const auto x = [this](std::int64_t key) { return std::lround(xAxis->coordToPixel(static_cast<double>(key))); };
    const auto y = [this](std::int64_t query) { return std::lround(yAxis->coordToPixel(static_cast<double>(query))); };
    return {QPoint(static_cast<int>(x(cells.k_begin)), static_cast<int>(y(cells.q_begin))),
            QPoint(static_cast<int>(x(cells.k_end)) - 1, static_cast<int>(y(cells.q_end)) - 1)};
}

void MapPlot::draw_part(QCPPainter* painter, const QImage& image, const maps::Cells& of, double cells_per_pixel_across,
                        double cells_per_pixel_down, const maps::Cells& part) const {
    const maps::Cells seen = shown();
    const maps::Cells cells{std::max(part.q_begin, seen.q_begin), std::min(part.q_end, seen.q_end),
                            std::max(part.k_begin, seen.k_begin), std::min(part.k_end, seen.k_end)};
    if (cells.queries() <= 0 || cells.keys() <= 0) return;
    painter->drawImage(QRectF(on_screen(cells)), image,
                       QRectF(static_cast<double>(cells.k_begin - of.k_begin) / cells_per_pixel_across,
                              static_cast<double>(cells.q_begin - of.q_begin) / cells_per_pixel_down,
                              static_cast<double>(cells.keys()) / cells_per_pixel_across,
                              static_cast<double>(cells.queries()) / cells_per_pixel_down));
}

void MapPlot::draw_map(QCPPainter* painter) {
    if (content_.queries == 0 || content_.keys == 0) return;
    painter->setRenderHint(QPainter::SmoothPixmapTransform, false);
    const maps::Cells all{0, content_.queries, 0, content_.keys};
    const auto visible = visible_tiles();
    images_.setMaxCost(std::max<qsizetype>(24 << 10, std::ssize(visible) * 512));
    QElapsedTimer clock;
    clock.start();
    bool ready = !visible.empty(), late = false;
    for (const maps::TileKey& key : visible) {
        const bool in_time = clock.elapsed() < kColouring;
        if (image_of(key, in_time)) continue;
        ready = false;
        late = late || !in_time;
    }
    if (late) replot(QCustomPlot::rpQueuedReplot);
    if (!ready && !thumbnail_.isNull()) {
        draw_part(painter, thumbnail_, all, static_cast<double>(content_.keys) / thumbnail_.width(),
                  static_cast<double>(content_.queries) / thumbnail_.height(), all);
    }
    const int top = maps::top_level(content_.queries, content_.keys);
    for (const maps::TileKey& key : visible) {
        // The tile, or until it is there the part of the next coarser one that is.
        const maps::Cells cells = maps::tile_cells(key, content_.queries, content_.keys);
        for (maps::TileKey at = key; at.level <= top; at = {key.map, at.level + 1, at.row / 2, at.column / 2}) {
            const QImage* image = image_of(at, at.level > key.level && clock.elapsed() < 2 * kColouring);
            if (!image) continue;
            const auto size = static_cast<double>(std::int64_t{1} << at.level);
            draw_part(painter, *image, maps::tile_cells(at, content_.queries, content_.keys), size, size, cells);
            break;
        }
    }
}

void MapPlot::draw_limits(QCPPainter* painter) const {
    const auto limit = static_cast<double>(content_.trained_positions);
    if (!(limit > 0)) return;
    const QRectF rect = area()->rect();
    QPen dashed(theme_.muted);
    dashed.setStyle(Qt::DashLine);
    painter->setRenderHint(QPainter::Antialiasing, false);
    painter->setPen(dashed);
    const double x = xAxis->coordToPixel(limit), y = yAxis->coordToPixel(limit);
    if (content_.queries > content_.trained_positions && y >= rect.top() && y <= rect.bottom()) {
        painter->drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y));
        // Below it, where a causal map is empty.
        QFont font = painter->font();
        font.setPixelSize(11);
        painter->setFont(font);
        painter->drawText(QRectF(rect.left(), y + 2, rect.width() - 6, 16), Qt::AlignRight | Qt::AlignTop,
                          tr("trained to position %1").arg(content_.trained_positions));
    }
    if (content_.keys > content_.trained_positions && x >= rect.left() && x <= rect.right())
        painter->drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()));
}

void MapPlot::draw_edge(QCPPainter* painter, const std::vector<std::int32_t>& values, bool down, int row,
                        const std::function<EdgeLook(std::int32_t)>& look) const {
    const QRectF rect = area()->rect();
    const QCPAxis* axis = down ? yAxis : xAxis;
    painter->setRenderHint(QPainter::Antialiasing, false);
    painter->setPen(Qt::NoPen);
    QFont font = painter->font();
    font.setPixelSize(kRegionEdge);
    font.setBold(true);
    painter->setFont(font);
    const double away = row * (kRegionEdge + 1);
    for (std::size_t begin = 0; begin < values.size();) {
        std::size_t end = begin + 1;
        while (end < values.size() && values[end] == values[begin]) ++end;
        const double a = axis->coordToPixel(static_cast<double>(begin)),
                     b = axis->coordToPixel(static_cast<double>(end));
        const QRectF run = down ? QRectF(rect.left() - 1 - kRegionEdge - away, a, kRegionEdge, b - a)
                                : QRectF(a, rect.bottom() + 2 + away, b - a, kRegionEdge);
        const QRectF seen = run.intersected(down ? QRectF(run.left(), rect.top(), kRegionEdge, rect.height())
                                                 : QRectF(rect.left(), run.top(), rect.width(), kRegionEdge));
        const EdgeLook drawn = look(values[begin]);
        begin = end;
        if (!drawn.colour.isValid() || seen.isEmpty()) continue;
        painter->fillRect(seen, drawn.colour);
        if (seen.width() < kRegionEdge || seen.height() < kRegionEdge) continue;
        painter->setPen(readable_on(drawn.colour));
        painter->drawText(seen, Qt::AlignCenter, drawn.word);
        painter->setPen(Qt::NoPen);
    }
}

void MapPlot::draw_regions(QCPPainter* painter) const {
    const auto look = [this](std::int32_t region) {
        return region == 0 ? EdgeLook{}
                           : EdgeLook{region_colour(region, theme_), QString(QLatin1Char(region == 1 ? 'A' : 'B'))};
    };
    draw_edge(painter, content_.key_regions, false, 0, look);
    draw_edge(painter, content_.query_regions, true, 0, look);
}

void MapPlot::draw_types(QCPPainter* painter) const {
    draw_edge(painter, content_.key_types, false, content_.key_regions.empty() ? 0 : 1, [this](std::int32_t type) {
        return type < 0 ? EdgeLook{} : EdgeLook{type_colour(type, theme_), type_letter(type)};
    });
}

void MapPlot::draw_marks(QCPPainter* painter) const {
    if (content_.queries == 0 || content_.keys == 0) return;
    draw_regions(painter);
    draw_types(painter);
    const QRectF rect = area()->rect();
    painter->setRenderHint(QPainter::Antialiasing, false);
    const auto across = [&](std::int64_t query) {
        const double y = yAxis->coordToPixel(static_cast<double>(query) + 0.5);
        if (y >= rect.top() && y <= rect.bottom()) painter->drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y));
    };
    const auto down = [&](std::int64_t key) {
        const double x = xAxis->coordToPixel(static_cast<double>(key) + 0.5);
        if (x >= rect.left() && x <= rect.right()) painter->drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()));
    };
    if (region_) {
        QColor fill = theme_.accent;
        fill.setAlpha(45);
        painter->setPen(QPen(theme_.accent));
        painter->setBrush(fill);
        painter->drawRect(on_screen(*region_).intersected(area()->rect()));
        painter->setBrush(Qt::NoBrush);
    }
    if (pointed_) {
        QPen dotted(theme_.muted);
        dotted.setStyle(Qt::DotLine);
        painter->setPen(dotted);
        across(pointed_->first);
        down(pointed_->second);
    }
    painter->setPen(QPen(theme_.accent));
    if (chosen_query_) across(*chosen_query_);
    if (chosen_key_) down(*chosen_key_);
}

}  // namespace headscope::widgets
