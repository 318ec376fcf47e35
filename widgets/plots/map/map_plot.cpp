// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/map/map_plot.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "widgets/plots/colour_map.h"
#include "widgets/plots/map/cells_plottable.h"
#include "widgets/plots/map/token_ticker.h"

namespace headscope::widgets {
namespace {

constexpr double kFewestCells = 4;  ///< that zooming in leaves along a side
constexpr int kAhead = 2;           ///< up to this level the tiles around those shown are made, too

}  // namespace

/// Draws the map below axes and grid.
class MapPlot::Tiles final : public FigurePlottable {
public:
    explicit Tiles(MapPlot* plot) : FigurePlottable(plot->xAxis, plot->yAxis, plot->theme_), plot_(plot) {}

protected:
    void draw(QCPPainter* painter) override {
        plot_->draw_map(painter);
        plot_->draw_limits(painter);
    }

private:
    MapPlot* plot_;
};

/// Crosshairs and region, above everything.
class MapPlot::Marks final : public QCPLayerable {
public:
    explicit Marks(MapPlot* plot) : QCPLayerable(plot, QStringLiteral("overlay")), plot_(plot) {}

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
    void draw(QCPPainter* painter) override { plot_->draw_marks(painter); }

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
    area()->setRangeZoomFactor(0.8);
    new Tiles(this);
    new Marks(this);
    for (QCPAxis* axis : {xAxis, yAxis}) {
        connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                [this, axis](const QCPRange& range) { keep_in_map(axis, range); });
    }
    connect(this, &QCustomPlot::beforeReplot, this, &MapPlot::lay_out_labels);
    // The level hangs on the size of the axes, which is known when they are laid out; so does what labels have room
    // for, which may then change the layout.
    connect(this, &QCustomPlot::afterLayout, this, [this] {
        if (lay_out_labels()) replot(QCustomPlot::rpQueuedReplot);
        update_wishes();
    });
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
    lay_out_ticks();
    static_cast<TokenTicker&>(*xAxis->ticker()).set_labels(content_.key_labels);
    static_cast<TokenTicker&>(*yAxis->ticker()).set_labels(content_.query_labels);
    if (!same_size) {
        chosen_query_.reset();
        chosen_key_.reset();
        pointed_.reset();
        region_.reset();
        show_all();
    }
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::set_colours(const figures::ColourScale& scale, figures::Pooling pooling) {
    colours_ = scale;
    pooling_ = pooling;
    update_lookup();
}

void MapPlot::update_lookup() {
    lookup_ = ColourLookup(colours_, colour_table(colours_.map, theme_), theme_.none.rgb(), theme_.zero.rgb());
    images_.clear();
    wishes_.clear();  // the server may have dropped tiles of which there were images
    if (!thumbnail_.isNull())
        thumbnail_ = coloured(content_.thumbnail_rows, content_.thumbnail_columns, content_.thumbnail);
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::set_theme(const Theme& theme) {
    theme_ = theme;
    setBackground(theme.background);
    area()->setBackground(theme.none);
    for (QCPAxis* axis : {xAxis, yAxis, xAxis2, yAxis2}) {
        axis->setBasePen(QPen(theme.line));
        axis->setTickPen(QPen(theme.line));
        axis->setSubTicks(false);
        axis->setTickLabelColor(theme.text);
        axis->setLabelColor(theme.text);
    }
    lay_out_ticks();
    update_lookup();
}

void MapPlot::lay_out_ticks() {
    // Outside: within they would cover the map's first keys. They reach beyond coloured edges.
    const bool pair = !content_.key_regions.empty() || !content_.query_regions.empty();
    const int edge = pair ? kRegionEdge : 0;
    xAxis->setTickLength(0, 4 + edge + (content_.key_types.empty() ? 0 : kRegionEdge + (pair ? 1 : 0)));
    yAxis->setTickLength(0, 4 + edge);
}

maps::Cells MapPlot::shown() const {
    const auto part = [](const QCPRange& range, std::int64_t cells) {
        const auto begin = std::clamp<std::int64_t>(std::llround(std::floor(range.lower)), 0, cells);
        return std::pair(begin, std::clamp<std::int64_t>(std::llround(std::ceil(range.upper)), begin, cells));
    };
    const auto [q_begin, q_end] = part(yAxis->range(), content_.queries);
    const auto [k_begin, k_end] = part(xAxis->range(), content_.keys);
    return {q_begin, q_end, k_begin, k_end};
}

void MapPlot::show_cells(const maps::Cells& cells) {
    updating_ = true;
    xAxis->setRange(static_cast<double>(cells.k_begin), static_cast<double>(cells.k_end));
    yAxis->setRange(static_cast<double>(cells.q_begin), static_cast<double>(cells.q_end));
    updating_ = false;
    Q_EMIT shown_changed();
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::show_all() {
    show_cells({0, std::max<std::int64_t>(1, content_.queries), 0, std::max<std::int64_t>(1, content_.keys)});
}

void MapPlot::zoom(double factor) {
    xAxis->scaleRange(factor);
    yAxis->scaleRange(factor);
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::pan(double across, double down) {
    xAxis->moveRange(across * xAxis->range().size());
    yAxis->moveRange(down * yAxis->range().size());
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::reveal(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    const auto centre = [](QCPAxis* axis, const std::optional<std::int64_t>& cell) {
        if (!cell) return;
        const double place = static_cast<double>(*cell) + 0.5;
        if (!axis->range().contains(place)) axis->moveRange(place - axis->range().center());
    };
    centre(xAxis, key);
    centre(yAxis, query);
    replot(QCustomPlot::rpQueuedReplot);
}

void MapPlot::set_chosen(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    if (query == chosen_query_ && key == chosen_key_) return;
    chosen_query_ = query;
    chosen_key_ = key;
    draw_marks_again();
}

void MapPlot::set_region(std::optional<maps::Cells> region) {
    region_ = region;
    draw_marks_again();
}

void MapPlot::set_region_mode(bool on) {
    region_mode_ = on;
    setCursor(on ? Qt::CrossCursor : Qt::ArrowCursor);
}

void MapPlot::draw_marks_again() {
    layer(QStringLiteral("overlay"))->replot();
}

void MapPlot::point_at(std::optional<std::pair<std::int64_t, std::int64_t>> cell) {
    if (cell == pointed_) return;
    pointed_ = cell;
    draw_marks_again();
    Q_EMIT pointed(cell ? cell->first : -1, cell ? cell->second : -1);
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
    Q_EMIT shown_changed();
    if (!turning_) replot(QCustomPlot::rpQueuedReplot);
}

int MapPlot::level() const {
    if (content_.queries == 0 || content_.keys == 0) return 0;
    const double ratio = devicePixelRatioF();
    const double across = xAxis->range().size() / std::max(1.0, area()->width() * ratio);
    const double down = yAxis->range().size() / std::max(1.0, area()->height() * ratio);
    const double cells_per_pixel = std::max({1.0, across, down});
    const int wanted = static_cast<int>(std::ceil(std::log2(cells_per_pixel) - 1e-9));
    return std::min(wanted, maps::top_level(content_.queries, content_.keys));
}

bool MapPlot::lay_out_labels() {
    bool others = false;
    const double line = 0.85 * QFontMetricsF(xAxis->tickLabelFont()).height();  // without what is between lines
    for (QCPAxis* axis : {xAxis, yAxis}) {
        auto& ticker = static_cast<TokenTicker&>(*axis->ticker());
        const std::int64_t step = ticker.step(axis->range());
        ticker.set_length(axis == xAxis ? area()->width() : area()->height());
        ticker.set_label_room(line);
        others = others || ticker.step(axis->range()) != step;
    }
    const double rotation = static_cast<TokenTicker&>(*xAxis->ticker()).shows_tokens(xAxis->range()) ? -90 : 0;
    if (rotation == xAxis->tickLabelRotation()) return others;
    xAxis->setTickLabelRotation(rotation);
    return true;
}

void MapPlot::update_wishes() {
    std::vector<maps::TileKey> keys = visible_tiles();
    if (level() <= kAhead) {
        for (const maps::TileKey& key : visible_tiles(1))
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    if (!service_ || keys == wishes_) return;
    wishes_ = keys;
    service_->want(this, std::move(keys));
}

bool MapPlot::complete() const {
    const auto keys = visible_tiles();
    return !keys.empty() && service_ &&
           std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return service_->find(key) != nullptr; });
}

std::optional<std::pair<std::int64_t, std::int64_t>> MapPlot::cell_at(const QPointF& place) const {
    if (!area()->rect().contains(place.toPoint())) return std::nullopt;
    const auto query = std::llround(std::floor(yAxis->pixelToCoord(place.y())));
    const auto key = std::llround(std::floor(xAxis->pixelToCoord(place.x())));
    if (query < 0 || query >= content_.queries || key < 0 || key >= content_.keys) return std::nullopt;
    return std::pair<std::int64_t, std::int64_t>(query, key);
}

void MapPlot::stretch_region(const QPointF& to) {
    if (content_.queries <= 0 || content_.keys <= 0) return;
    const auto cell = [](const QCPAxis* axis, double pixel, std::int64_t cells) {
        const double place = std::floor(axis->pixelToCoord(pixel));
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, cells - 1);
    };
    const std::int64_t q0 = cell(yAxis, pressed_.y(), content_.queries), q1 = cell(yAxis, to.y(), content_.queries);
    const std::int64_t k0 = cell(xAxis, pressed_.x(), content_.keys), k1 = cell(xAxis, to.x(), content_.keys);
    set_region(maps::Cells{std::min(q0, q1), std::max(q0, q1) + 1, std::min(k0, k1), std::max(k0, k1) + 1});
}

void MapPlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    const bool region = region_mode_ || (event->modifiers() & Qt::ShiftModifier);
    stretching_ = region && event->button() == Qt::LeftButton && cell_at(event->position()).has_value();
    if (!stretching_) QCustomPlot::mousePressEvent(event);
}

void MapPlot::mouseReleaseEvent(QMouseEvent* event) {
    const bool dragged = (event->pos() - pressed_).manhattanLength() > 3;
    const bool stretched = std::exchange(stretching_, false);
    if (!stretched) QCustomPlot::mouseReleaseEvent(event);
    if (event->button() != Qt::LeftButton) return;
    if (dragged) {
        if (stretched) Q_EMIT region_chosen();
        return;
    }
    if (const auto cell = cell_at(event->position())) {
        set_chosen(cell->first, cell->second);
        Q_EMIT chosen(cell->first, cell->second);
    }
}

void MapPlot::mouseMoveEvent(QMouseEvent* event) {
    if (!stretching_) {
        QCustomPlot::mouseMoveEvent(event);
    } else if ((event->pos() - pressed_).manhattanLength() > 3) {
        stretch_region(event->position());
    }
    point_at(cell_at(event->position()));
}

void MapPlot::mouseDoubleClickEvent(QMouseEvent* event) {
    QCustomPlot::mouseDoubleClickEvent(event);
    if (event->button() == Qt::LeftButton) show_all();
}

void MapPlot::wheelEvent(QWheelEvent* event) {
    turning_ = true;  // QCustomPlot draws at once; nothing else needs to
    QCustomPlot::wheelEvent(event);
    turning_ = false;
}

void MapPlot::leaveEvent(QEvent* event) {
    QCustomPlot::leaveEvent(event);
    point_at(std::nullopt);
}

}  // namespace headscope::widgets
