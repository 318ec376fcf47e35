// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include "widgets/plots/map/map_plot.h"
#include "widgets/views/compare/token_link.h"

namespace headscope::widgets {

/// Over a map: orange bars at the edge beside tokens that have no partner, and the crosshair of the map that the
/// pointer is in. On the layer that MapPlot keeps for what changes without the map.
class LinkMarks final : public QCPLayerable {
public:
    explicit LinkMarks(MapPlot* plot);

    /// `partners` of this map's tokens; null: none are marked.
    void set_partners(const std::vector<std::int64_t>* queries, const std::vector<std::int64_t>* keys);
    void set_cursor(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    void set_theme(const Theme& theme) { theme_ = theme; }
    /// How many queries and keys are marked.
    std::int64_t marked_queries() const { return std::ssize(queries_); }
    std::int64_t marked_keys() const { return std::ssize(keys_); }
    std::optional<std::int64_t> cursor_query() const { return query_; }
    std::optional<std::int64_t> cursor_key() const { return key_; }

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
    void draw(QCPPainter* painter) override;

private:
    MapPlot* plot_;
    std::vector<std::int64_t> queries_, keys_;  ///< without a partner, rising
    std::optional<std::int64_t> query_, key_;
    Theme theme_;
};

}  // namespace headscope::widgets
