// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/map_plot.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "widgets/cells_plottable.h"
#include "widgets/colour_map.h"
#include "widgets/token_ticker.h"

namespace headscope::widgets {
namespace {

constexpr double kFewestCells = 4;  ///< that zooming in leaves along a side

QByteArray name_of(const tiles::TileKey& key) {
    return QByteArray(reinterpret_cast<const char*>(&key), sizeof key);
}

}  // namespace

/// Draws the map below axes and grid.
class MapPlot::Tiles final : public FigurePlottable {
public:
    explicit Tiles(MapPlot* plot) : FigurePlottable(plot->xAxis, plot->yAxis, plot->theme_), plot_(plot) {}

protected:
    void draw(QCPPainter* painter) override {
        plot_->draw_map(painter);
        plot_->draw_marks(painter);
    }

private:
    MapPlot* plot_;
};

MapPlot::MapPlot(TileService* service, QWidget* parent)
    : QCustomPlot(parent), service_(service), theme_(make_theme(false)) {
    colours_.scale = figures::ScaleKind::logarithmic;
    colours_.minimum = 1e-4;
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    setNoAntialiasingOnDrag(true);
    xAxis->setLabel(tr("key"));
    yAxis->setLabel(tr("query"));
    yAxis->setRangeReversed(true);
    xAxis->setTicker(QSharedPointer<TokenTicker>::create());
    yAxis->setTicker(QSharedPointer<TokenTicker>::create());
    for (QCPAxis* axis : {xAxis, yAxis, xAxis2, yAxis2}) {
        axis->grid()->setVisible(false);
        axis->setVisible(true);
    }
    for (QCPAxis* axis : {xAxis2, yAxis2}) {
        axis->setTicks(false);
        axis->setTickLabels(false);
    }
    axisRect()->setRangeZoomFactor(0.8);
    new Tiles(this);
    for (QCPAxis* axis : {xAxis, yAxis}) {
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                [this, axis](const QCPRange& range) { keep_in_map(axis, range); });
    }
    // The level hangs on the size of the axes, which is known when they are laid out.
    connect(this, &QCustomPlot::afterLayout, this, &MapPlot::update_wishes);
    connect(service_, &TileService::tiles_ready, this, [this] { replot(QCustomPlot::rpQueuedReplot); });
    set_theme(theme_);
}

void MapPlot::set_content(MapContent content) {
    const bool same_size = content.queries == content_.queries && content.keys == content_.keys;
    content_ = std::move(content);
    const auto thumbnail_size = static_cast<std::size_t>(content_.thumbnail_rows * content_.thumbnail_columns);
    thumbnail_ = thumbnail_size > 0 && content_.thumbnail.size() == thumbnail_size
                     ? coloured(content_.thumbnail_rows, content_.thumbnail_columns, content_.thumbnail)
                     : QImage();
    static_cast<TokenTicker&>(*xAxis->ticker()).set_labels(content_.key_labels);
    static_cast<TokenTicker&>(*yAxis->ticker()).set_labels(content_.query_labels);
    if (!same_size) {
        chosen_.reset();
        show_all();
    }
    update_wishes();
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::set_colours(const figures::ColourScale& scale, figures::Pooling pooling) {
    colours_ = scale;
    pooling_ = pooling;
    images_.clear();
    if (!content_.thumbnail.empty())
        thumbnail_ = coloured(content_.thumbnail_rows, content_.thumbnail_columns, content_.thumbnail);
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::set_theme(const Theme& theme) {
    theme_ = theme;
    setBackground(theme.background);
    axisRect()->setBackground(theme.none);
    for (QCPAxis* axis : {xAxis, yAxis, xAxis2, yAxis2}) {
        axis->setBasePen(QPen(theme.line));
        axis->setTickPen(QPen(theme.line));
        axis->setSubTicks(false);
        axis->setTickLength(0, 4);  // inside they would cover the map's first keys
        axis->setTickLabelColor(theme.text);
        axis->setLabelColor(theme.text);
    }
    set_colours(colours_, pooling_);
}

tiles::Cells MapPlot::shown() const {
    const auto part = [](const QCPRange& range, std::int64_t cells) {
        const auto begin = std::clamp<std::int64_t>(std::llround(std::floor(range.lower)), 0, cells);
        return std::pair(begin, std::clamp<std::int64_t>(std::llround(std::ceil(range.upper)), begin, cells));
    };
    const auto [q_begin, q_end] = part(yAxis->range(), content_.queries);
    const auto [k_begin, k_end] = part(xAxis->range(), content_.keys);
    return {q_begin, q_end, k_begin, k_end};
}

void MapPlot::show_cells(const tiles::Cells& cells) {
    updating_ = true;
    xAxis->setRange(static_cast<double>(cells.k_begin), static_cast<double>(cells.k_end));
    yAxis->setRange(static_cast<double>(cells.q_begin), static_cast<double>(cells.q_end));
    updating_ = false;
    update_wishes();
    Q_EMIT shown_changed();
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::show_all() {
    show_cells({0, std::max<std::int64_t>(1, content_.queries), 0, std::max<std::int64_t>(1, content_.keys)});
}

void MapPlot::set_chosen(std::optional<std::pair<std::int64_t, std::int64_t>> cell) {
    if (cell == chosen_) return;
    chosen_ = cell;
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::keep_in_map(QCPAxis* axis, const QCPRange& range) {
    if (updating_) return;
    const auto cells = static_cast<double>(std::max<std::int64_t>(1, axis == xAxis ? content_.keys : content_.queries));
    const double size = std::clamp(range.size(), std::min(kFewestCells, cells), cells);
    // A zoom that hits a limit stays about its middle, a pan stops at the map's end.
    double lower = range.size() == size ? range.lower : range.center() - size / 2;
    lower = std::clamp(lower, 0.0, cells - size);
    updating_ = true;
    axis->setRange(lower, lower + size);
    updating_ = false;
    update_wishes();
    Q_EMIT shown_changed();
}

int MapPlot::level() const {
    if (content_.queries == 0 || content_.keys == 0) return 0;
    const double ratio = devicePixelRatioF();
    const double across = xAxis->range().size() / std::max(1.0, axisRect()->width() * ratio);
    const double down = yAxis->range().size() / std::max(1.0, axisRect()->height() * ratio);
    const double cells_per_pixel = std::max({1.0, across, down});
    const int wanted = static_cast<int>(std::ceil(std::log2(cells_per_pixel) - 1e-9));
    return std::min(wanted, tiles::top_level(content_.queries, content_.keys));
}

std::vector<tiles::TileKey> MapPlot::visible_tiles() const {
    std::vector<tiles::TileKey> keys;
    const tiles::Cells cells = shown();
    if (cells.queries() == 0 || cells.keys() == 0 || content_.map == 0) return keys;
    const int at = level();
    const std::int64_t side = tiles::kTileSize << at;
    for (std::int64_t row = cells.q_begin / side; row * side < cells.q_end; ++row)
        for (std::int64_t column = cells.k_begin / side; column * side < cells.k_end; ++column)
            keys.push_back({content_.map, at, row, column});
    const double middle_row = static_cast<double>(cells.q_begin + cells.q_end) / 2 / static_cast<double>(side) - 0.5;
    const double middle_column = static_cast<double>(cells.k_begin + cells.k_end) / 2 / static_cast<double>(side) - 0.5;
    const auto distance = [&](const tiles::TileKey& key) {
        return std::hypot(static_cast<double>(key.row) - middle_row, static_cast<double>(key.column) - middle_column);
    };
    std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    return keys;
}

void MapPlot::lay_out_labels() {
    auto& across = static_cast<TokenTicker&>(*xAxis->ticker());
    auto& down = static_cast<TokenTicker&>(*yAxis->ticker());
    across.set_length(axisRect()->width());
    down.set_length(axisRect()->height());
    const double line = QFontMetricsF(xAxis->tickLabelFont()).height();
    across.set_label_room(line);
    down.set_label_room(line);
    xAxis->setTickLabelRotation(across.shows_tokens(xAxis->range()) ? -90 : 0);
}

void MapPlot::update_wishes() {
    lay_out_labels();
    std::vector<tiles::TileKey> keys = visible_tiles();
    if (!service_ || keys == wishes_) return;
    wishes_ = keys;
    service_->want(this, std::move(keys));
}

bool MapPlot::complete() const {
    const auto keys = visible_tiles();
    return !keys.empty() && service_ &&
           std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return service_->find(key) != nullptr; });
}

QImage MapPlot::coloured(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) const {
    QImage image(static_cast<int>(columns), static_cast<int>(rows), QImage::Format_RGB32);
    const ColourTable& table = colour_table(colours_.map, theme_.dark);
    const QRgb none = theme_.none.rgb();
    for (int y = 0; y < image.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
        const float* row = values.data() + static_cast<std::ptrdiff_t>(y) * image.width();
        for (int x = 0; x < image.width(); ++x) line[x] = colour_of(table, fraction(colours_, row[x]), none);
    }
    return image;
}

const QImage* MapPlot::image_of(const tiles::TileKey& key) {
    const QByteArray name = name_of(key);
    if (const QImage* image = images_.object(name)) return image;
    const auto tile = service_ ? service_->find(key) : nullptr;
    if (!tile) return nullptr;
    const auto& values = pooling_ == figures::Pooling::maximum ? tile->extreme : tile->mean;
    images_.insert(name, new QImage(coloured(tile->rows, tile->columns, values)));
    return images_.object(name);
}

QRect MapPlot::on_screen(const tiles::Cells& cells) const {
    const auto x = [this](std::int64_t key) { return std::lround(xAxis->coordToPixel(static_cast<double>(key))); };
    const auto y = [this](std::int64_t query) { return std::lround(yAxis->coordToPixel(static_cast<double>(query))); };
    return {QPoint(static_cast<int>(x(cells.k_begin)), static_cast<int>(y(cells.q_begin))),
            QPoint(static_cast<int>(x(cells.k_end)) - 1, static_cast<int>(y(cells.q_end)) - 1)};
}

void MapPlot::draw_part(QCPPainter* painter, const QImage& image, const tiles::Cells& of, double cells_per_pixel_across,
                        double cells_per_pixel_down, const tiles::Cells& part) const {
    const tiles::Cells seen = shown();
    const tiles::Cells cells{std::max(part.q_begin, seen.q_begin), std::min(part.q_end, seen.q_end),
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
    const tiles::Cells all{0, content_.queries, 0, content_.keys};
    const auto visible = visible_tiles();
    const bool ready = !visible.empty() &&
                       std::all_of(visible.begin(), visible.end(), [this](const auto& key) { return image_of(key); });
    if (!ready && !thumbnail_.isNull()) {
        draw_part(painter, thumbnail_, all, static_cast<double>(content_.keys) / thumbnail_.width(),
                  static_cast<double>(content_.queries) / thumbnail_.height(), all);
    }
    for (const tiles::TileKey& key : visible) {
        // The tile, or until it is there the part of the next coarser one that is.
        const tiles::Cells cells = tiles::tile_cells(key, content_.queries, content_.keys);
        const int top = tiles::top_level(content_.queries, content_.keys);
        for (tiles::TileKey at = key; at.level <= top; at = {key.map, at.level + 1, at.row / 2, at.column / 2}) {
            const QImage* image = image_of(at);
            if (!image) continue;
            const auto size = static_cast<double>(std::int64_t{1} << at.level);
            draw_part(painter, *image, tiles::tile_cells(at, content_.queries, content_.keys), size, size, cells);
            break;
        }
    }
}

void MapPlot::draw_marks(QCPPainter* painter) const {
    const QRectF area = axisRect()->rect();
    const auto across = [&](double query, const QPen& pen) {
        const double y = yAxis->coordToPixel(query);
        painter->setPen(pen);
        if (y >= area.top() && y <= area.bottom()) painter->drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    };
    const auto down = [&](double key, const QPen& pen) {
        const double x = xAxis->coordToPixel(key);
        painter->setPen(pen);
        if (x >= area.left() && x <= area.right()) painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    };
    painter->setRenderHint(QPainter::Antialiasing, false);
    const auto limit = static_cast<double>(content_.trained_positions);
    QPen dashed(theme_.muted);
    dashed.setStyle(Qt::DashLine);
    if (limit > 0 && content_.queries > content_.trained_positions) across(limit, dashed);
    if (limit > 0 && content_.keys > content_.trained_positions) down(limit, dashed);
    if (!chosen_) return;
    QPen cross(theme_.accent);
    across(static_cast<double>(chosen_->first) + 0.5, cross);
    down(static_cast<double>(chosen_->second) + 0.5, cross);
}

std::optional<std::pair<std::int64_t, std::int64_t>> MapPlot::cell_at(const QPointF& place) const {
    if (!axisRect()->rect().contains(place.toPoint())) return std::nullopt;
    const auto query = std::llround(std::floor(yAxis->pixelToCoord(place.y())));
    const auto key = std::llround(std::floor(xAxis->pixelToCoord(place.x())));
    if (query < 0 || query >= content_.queries || key < 0 || key >= content_.keys) return std::nullopt;
    return std::pair<std::int64_t, std::int64_t>(query, key);
}

void MapPlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    QCustomPlot::mousePressEvent(event);
}

void MapPlot::mouseReleaseEvent(QMouseEvent* event) {
    QCustomPlot::mouseReleaseEvent(event);
    const bool dragged = (event->pos() - pressed_).manhattanLength() > 3;
    if (event->button() != Qt::LeftButton || dragged) return;
    if (const auto cell = cell_at(event->position())) {
        set_chosen(cell);
        Q_EMIT chosen(cell->first, cell->second);
    }
}

void MapPlot::mouseMoveEvent(QMouseEvent* event) {
    QCustomPlot::mouseMoveEvent(event);
    const auto cell = cell_at(event->position());
    Q_EMIT pointed(cell ? cell->first : -1, cell ? cell->second : -1);
}

void MapPlot::mouseDoubleClickEvent(QMouseEvent* event) {
    QCustomPlot::mouseDoubleClickEvent(event);
    if (event->button() == Qt::LeftButton) show_all();
}

void MapPlot::leaveEvent(QEvent* event) {
    QCustomPlot::leaveEvent(event);
    Q_EMIT pointed(-1, -1);
}

}  // namespace headscope::widgets
