// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCache>
#include <QImage>
#include <QPointer>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/figures/figure_data.h"
#include "core/maps/tile.h"
#include "widgets/plots/colour_lookup.h"
#include "widgets/plots/map/tile_service.h"
#include "widgets/plots/qcp.h"
#include "widgets/theme.h"

namespace headscope::maps {
inline std::size_t qHash(const TileKey& key, std::size_t seed = 0) {
    return qHashMulti(seed, key.map, key.level, key.row, key.column);
}
}  // namespace headscope::maps

namespace headscope::widgets {

/// Effect of one key or button on a map: the share of the span that remains, and the share that it moves by.
inline constexpr double kZoomStep = 0.5, kPanStep = 0.25;
inline constexpr int kRegionEdge = 10;  ///< pixels: the coloured edges of a pair of texts, and of types of keys

/// One map as a MapPlot shows it.
struct MapContent {
    std::uint64_t map = 0;  ///< as TileService::add gave it; 0: only the thumbnail is there yet
    std::int64_t queries = 0, keys = 0;
    /// [thumbnail_rows, thumbnail_columns], the maximum under each block: drawn where tiles are not there yet.
    std::int64_t thumbnail_rows = 0, thumbnail_columns = 0;
    std::vector<float> thumbnail;
    std::vector<QString> query_labels, key_labels;  ///< one a token, or empty
    /// For a pair of texts, one a token: 0 inserted, 1 A, 2 B; a colored edge beside the axes. Empty: no pair.
    std::vector<std::int32_t> query_regions, key_regions;
    /// For NAtS-L, one a token: 0 softmax, 1 linear, -1 none; a colored edge below the keys. Empty: no types.
    std::vector<std::int32_t> key_types;
    std::int64_t trained_positions = 0;  ///< marked when the map passes it; 0: no limit
};

/// An attention map of any length under axes that pan and zoom: tiles of the level at which a pixel of the tile is at
/// least one of the screen, so that a diagonal one cell wide never vanishes; coarser ones until those are made. Drag
/// pans, the wheel zooms at the cursor, a click chooses a cell, Shift and drag chooses a region, a double click shows
/// all. Crosshairs and region lie on a layer of their own: moving them does not draw the map again.
class MapPlot : public QCustomPlot {
    Q_OBJECT
public:
    explicit MapPlot(TileService* service, QWidget* parent = nullptr);

    /// Shows another map; where it has the size of the one before, the part that is shown stays.
    void set_content(MapContent content);
    const MapContent& content() const { return content_; }
    void set_colours(const figures::ColourScale& scale, figures::Pooling pooling);
    const figures::ColourScale& colours() const { return colours_; }
    void set_theme(const Theme& theme);

    /// The cells shown, whole ones and parts.
    maps::Cells shown() const;
    void show_cells(const maps::Cells& cells);
    void show_all();
    /// factor < 1: fewer cells, about the middle.
    void zoom(double factor);
    /// By shares of what is shown.
    void pan(double across, double down);
    /// Moves to the middle what is not shown.
    void reveal(std::optional<std::int64_t> query, std::optional<std::int64_t> key);

    /// A line at a query, one at a key.
    void set_chosen(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    void set_region(std::optional<maps::Cells> region);
    const std::optional<maps::Cells>& region() const { return region_; }
    /// A plain drag chooses a region, too.
    void set_region_mode(bool on);
    bool region_mode() const { return region_mode_; }

    /// The axes of the map; axisRect() may give those of something beside it.
    QCPAxisRect* area() const { return xAxis->axisRect(); }
    std::optional<std::pair<std::int64_t, std::int64_t>> cell_at(const QPointF& place) const;

    /// Level of the tiles that the screen asks for, and whether all that are shown are there.
    int level() const;
    bool complete() const;

Q_SIGNALS:
    void pointed(qint64 query, qint64 key);  ///< -1, -1: beside the map
    void chosen(qint64 query, qint64 key);
    void region_chosen();
    void shown_changed();

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    class Tiles;
    class Marks;
    void keep_in_map(QCPAxis* axis, const QCPRange& range);
    bool lay_out_labels();
    void lay_out_ticks();
    void update_wishes();
    void update_lookup();
    void draw_marks_again();
    void point_at(std::optional<std::pair<std::int64_t, std::int64_t>> cell);
    void stretch_region(const QPointF& to);

    // map_plot_draw.cpp
    void draw_map(QCPPainter* painter);
    /// The cells of `part` that are shown, from an image of the cells `of`.
    void draw_part(QCPPainter* painter, const QImage& image, const maps::Cells& of, double cells_per_pixel_across,
                   double cells_per_pixel_down, const maps::Cells& part) const;
    void draw_limits(QCPPainter* painter) const;
    void draw_regions(QCPPainter* painter) const;
    void draw_types(QCPPainter* painter) const;
    /// Runs of equal values along an axis, each in its colour with its word where there is room; `row`: how many edges
    /// lie between it and the map.
    struct EdgeLook {
        QColor colour;  ///< invalid: nothing is drawn
        QString word;
    };
    void draw_edge(QCPPainter* painter, const std::vector<std::int32_t>& values, bool down, int row,
                   const std::function<EdgeLook(std::int32_t)>& look) const;
    void draw_marks(QCPPainter* painter) const;
    /// Tiles of the level, from the middle outwards; `around`: rings of tiles beyond what is shown.
    std::vector<maps::TileKey> visible_tiles(std::int64_t around = 0) const;
    QRect on_screen(const maps::Cells& cells) const;
    QImage coloured(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) const;
    /// Null: not made, or not coloured yet and `time` is over.
    const QImage* image_of(const maps::TileKey& key, bool colour);

    QPointer<TileService> service_;
    MapContent content_;
    figures::ColourScale colours_;
    figures::Pooling pooling_ = figures::Pooling::maximum;
    Theme theme_;
    ColourLookup lookup_;
    QImage thumbnail_;
    QCache<maps::TileKey, QImage> images_{40 << 10};  ///< coloured tiles, in KB
    std::optional<std::int64_t> chosen_query_, chosen_key_;
    std::optional<std::pair<std::int64_t, std::int64_t>> pointed_;
    std::optional<maps::Cells> region_;
    std::vector<maps::TileKey> wishes_;  ///< as passed on last
    QPoint pressed_;
    bool updating_ = false, turning_ = false, region_mode_ = false, stretching_ = false;
};

}  // namespace headscope::widgets
