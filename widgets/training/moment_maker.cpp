// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/moment_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "widgets/plots/map/cell_image.h"
#include "widgets/plots/map/head_thumbnails.h"

namespace headscope::widgets {
namespace {

/// All heads of all sites as a mosaic, a row a site.
figures::Mosaic mosaic_of(const workspace::LiveRun& record, const training::ProbeResult& probe) {
    figures::Mosaic mosaic;
    const auto& sites = record.started->sites;
    const std::int64_t heads = workspace::most_heads(record), size = probe.thumbnail_size;
    mosaic.rows = std::ssize(sites);
    mosaic.columns = heads;
    mosaic.size = size;
    mosaic.values = probe.thumbnails;
    const float none = std::numeric_limits<float>::quiet_NaN();
    float highest = 0;
    for (std::int64_t s = 0; s < mosaic.rows; ++s) {
        const Site& site = sites[static_cast<std::size_t>(s)];
        for (std::int64_t h = 0; h < heads; ++h) {
            float* tile = mosaic.values.data() + (s * heads + h) * size * size;
            for (std::int64_t r = 0; r < size; ++r)
                for (std::int64_t c = 0; c < size; ++c) {
                    float& value = tile[r * size + c];
                    if (h >= site.heads || !site.has_matrix || (site.causal && c > r)) value = none;
                    if (value > highest) highest = value;
                }
        }
    }
    mosaic.colours = thumbnail_scale("mean", round_up(highest));
    mosaic.colours.maximum = round_up(highest);
    return mosaic;
}

/// The size with square tiles that fits.
QSize wall_size(QSize room, std::int64_t sites, std::int64_t heads) {
    const double tile =
        std::min(static_cast<double>(room.width()) / static_cast<double>(std::max<std::int64_t>(1, heads)),
                 static_cast<double>(room.height()) / static_cast<double>(std::max<std::int64_t>(1, sites)));
    const double side = std::clamp(tile, 4.0, 400.0);
    return {static_cast<int>(side * static_cast<double>(heads)), static_cast<int>(side * static_cast<double>(sites))};
}

Moment make(const MomentRequest& wish) {
    Moment moment;
    moment.wish = wish;
    const workspace::LiveRun& record = *wish.record;
    moment.sites = record.started ? std::ssize(record.started->sites) : 0;
    moment.heads = workspace::most_heads(record);
    const auto series = workspace::probe_series(record, wish.indicator, wish.of_site);
    for (const auto& line : series.lines)
        moment.lines.push_back(
            {line.site, line.head,
             std::make_shared<const CurvePlot::Points>(CurvePlot::Points{series.steps, line.values})});
    if (wish.probe >= record.probes.size()) return moment;
    moment.radars =
        std::make_shared<const figures::FigureData>(workspace::probe_radars(record, wish.probe, wish.radar_head));
    const training::ProbeResult& probe = *record.probes[wish.probe];
    constexpr std::int64_t kLargest = 1024;  // of a side; a journal may come from anywhere
    const std::int64_t size = std::clamp<std::int64_t>(probe.thumbnail_size, 0, kLargest);
    const auto cells = moment.sites * moment.heads * size * size;
    if (size > 0 && size == probe.thumbnail_size && cells > 0 && std::ssize(probe.thumbnails) == cells &&
        !wish.wall.isEmpty()) {
        const figures::Mosaic mosaic = mosaic_of(record, probe);
        const Theme theme = make_theme(wish.dark);
        const CellColours colours{mosaic.colours, colour_table(figures::ColourMap::sequential, theme),
                                  theme.none.rgb()};
        moment.wall =
            mosaic_image(mosaic, colours, theme.background.rgb(), wall_size(wish.wall, moment.sites, moment.heads), 0);
        moment.highest = mosaic.colours.maximum;
    }
    return moment;
}

}  // namespace

QRectF wall_tile(const QRectF& wall, std::int64_t sites, std::int64_t heads, std::int64_t site, std::int64_t head) {
    figures::Mosaic mosaic;
    mosaic.rows = sites;
    mosaic.columns = heads;
    return mosaic_tile(mosaic, wall, site, head, 0);
}

MomentMaker::MomentMaker(Worker* worker, QObject* parent) : QObject(parent), worker_(worker) {}

MomentMaker::~MomentMaker() {
    mailbox_.close();
    worker_->cancel(this);
}

void MomentMaker::ask(const MomentRequest& wish) {
    wanted_ = wish;
    if (!busy_) begin();
}

void MomentMaker::begin() {
    if (!wanted_.record || wanted_ == moment_.wish) return;
    busy_ = true;
    worker_->post(this, [this, wish = wanted_, send = mailbox_.sender()](const Cancellation&) {
        std::shared_ptr<Moment> done;
        try {
            done = std::make_shared<Moment>(make(wish));
        } catch (...) {  // no memory: what there was stays, until it is asked for again
        }
        send([this, done = std::move(done), wish]() mutable {
            busy_ = false;
            if (!done) {
                if (wanted_ != wish) begin();
                return;
            }
            std::swap(moment_, *done);
            worker_->let_go(std::move(done));
            begin();
            Q_EMIT made();
        });
    });
}

}  // namespace headscope::widgets
