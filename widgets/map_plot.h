// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCache>
#include <QImage>
#include <QPointer>
#include <optional>
#include <utility>
#include <vector>

#include "core/figures/figure.h"
#include "core/tiles/tile.h"
#include "widgets/qcp.h"
#include "widgets/theme.h"
#include "widgets/tile_service.h"

namespace headscope::widgets {

/// One map as a MapPlot shows it.
struct MapContent {
    std::uint64_t map = 0;  ///< as TileService::add gave it; 0: only the thumbnail is there yet
    std::int64_t queries = 0, keys = 0;
    /// [thumbnail_rows, thumbnail_columns], the maximum under each block: drawn where tiles are not there yet.
    std::int64_t thumbnail_rows = 0, thumbnail_columns = 0;
    std::vector<float> thumbnail;
    std::vector<QString> query_labels, key_labels;  ///< one a token, or empty
    std::int64_t trained_positions = 0;             ///< marked when the map passes it; 0: no limit
};

/// An attention map of any length under axes that pan and zoom: tiles of the level at which a pixel of the tile is at
/// least one of the screen, so that a diagonal one cell wide never vanishes; coarser ones until those are made. Drag
/// pans, the wheel zooms at the cursor, a click chooses a cell, a double click shows all.
class MapPlot : public QCustomPlot {
    Q_OBJECT
public:
    explicit MapPlot(TileService* service, QWidget* parent = nullptr);

    /// Shows another map; where it has the size of the one before, the part that is shown stays.
    void set_content(MapContent content);
    const MapContent& content() const { return content_; }
    void set_colours(const figures::ColourScale& scale, figures::Pooling pooling);
    void set_theme(const Theme& theme);

    /// The cells shown, whole ones and parts.
    tiles::Cells shown() const;
    void show_cells(const tiles::Cells& cells);
    void show_all();
    /// A cross at a cell; nothing: none.
    void set_chosen(std::optional<std::pair<std::int64_t, std::int64_t>> cell);

    /// Level of the tiles that the screen asks for, and whether all that are shown are there.
    int level() const;
    bool complete() const;

Q_SIGNALS:
    void pointed(qint64 query, qint64 key);  ///< -1, -1: beside the map
    void chosen(qint64 query, qint64 key);
    void shown_changed();

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    class Tiles;
    void keep_in_map(QCPAxis* axis, const QCPRange& range);
    void lay_out_labels();
    void update_wishes();
    void draw_map(QCPPainter* painter);
    /// The cells of `part` that are shown, from an image of the cells `of`.
    void draw_part(QCPPainter* painter, const QImage& image, const tiles::Cells& of, double cells_per_pixel_across,
                   double cells_per_pixel_down, const tiles::Cells& part) const;
    void draw_marks(QCPPainter* painter) const;
    std::vector<tiles::TileKey> visible_tiles() const;
    QRect on_screen(const tiles::Cells& cells) const;
    QImage coloured(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) const;
    const QImage* image_of(const tiles::TileKey& key);
    std::optional<std::pair<std::int64_t, std::int64_t>> cell_at(const QPointF& place) const;

    QPointer<TileService> service_;
    MapContent content_;
    figures::ColourScale colours_;
    figures::Pooling pooling_ = figures::Pooling::maximum;
    Theme theme_;
    QImage thumbnail_;
    QCache<QByteArray, QImage> images_{96};  ///< coloured tiles of 256 KB
    std::optional<std::pair<std::int64_t, std::int64_t>> chosen_;
    std::vector<tiles::TileKey> wishes_;  ///< as passed on last
    QPoint pressed_;
    bool updating_ = false;
};

}  // namespace headscope::widgets
