// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QObject>
#include <memory>
#include <optional>

#include "core/base/process/worker.h"
#include "core/figures/figure_data.h"
#include "core/workspace/probe_series.h"
#include "widgets/mailbox.h"
#include "widgets/theme.h"
#include "widgets/training/curve_plot.h"

namespace headscope::widgets {

/// Selection of a run's probe.
struct MomentRequest {
    std::shared_ptr<const workspace::LiveRun> record;
    std::size_t probe = 0;
    std::optional<std::int64_t> radar_head;  ///< empty: means over heads
    std::string indicator;
    std::optional<std::int64_t> of_site;  ///< curves: its heads; empty: means of all layers
    QSize wall;                           ///< pixels that thumbnails may take
    bool dark = false;

    bool operator==(const MomentRequest&) const = default;
};

struct MomentLine {
    std::int64_t site = 0, head = -1;
    std::shared_ptr<const CurvePlot::Points> points;
};

/// The same, made.
struct Moment {
    MomentRequest wish;
    std::shared_ptr<const figures::FigureData> radars;
    QImage wall;  ///< null: the run kept no thumbnails
    std::int64_t sites = 0, heads = 0;
    double highest = 0;  ///< end of the thumbnails' scale
    std::vector<MomentLine> lines;
};

/// Makes moments on a worker: one at a time, the latest request next.
class MomentMaker : public QObject {
    Q_OBJECT
public:
    explicit MomentMaker(Worker* worker, QObject* parent = nullptr);
    ~MomentMaker() override;
    void ask(const MomentRequest& wish);
    const Moment& made_moment() const { return moment_; }
    bool idle() const { return !busy_; }

Q_SIGNALS:
    void made();

private:
    void begin();

    Worker* worker_;
    Moment moment_;
    MomentRequest wanted_;
    bool busy_ = false;
    Mailbox mailbox_{this};
};

/// Place of a head's tile in a wall of that size; the part that is drawn.
QRectF wall_tile(const QRectF& wall, std::int64_t sites, std::int64_t heads, std::int64_t site, std::int64_t head);

}  // namespace headscope::widgets
