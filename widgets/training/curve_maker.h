// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <vector>

#include "core/base/process/worker.h"
#include "core/workspace/run_curves.h"
#include "widgets/mailbox.h"
#include "widgets/training/curve_plot.h"

namespace headscope::widgets {

/// Curves of a run, ready for plots.
struct RunLines {
    using Points = std::shared_ptr<const CurvePlot::Points>;
    Points loss, smooth_loss, validation, learning_rate, gradient_norm, smooth_norm, speed, smooth_speed, memory;
    Points accuracy, smooth_accuracy, validation_accuracy;  ///< without points where none was measured
};

/// Makes the curves of runs on a worker: one request at a time, the latest next, and what did not change is kept.
class CurveMaker : public QObject {
    Q_OBJECT
public:
    using Records = std::map<int, std::shared_ptr<const workspace::LiveRun>>;
    explicit CurveMaker(Worker* worker, QObject* parent = nullptr);
    ~CurveMaker() override;

    void ask(Records records, const workspace::RunCurveOptions& options);
    /// Curves of a run from the last finished request; null before.
    const RunLines* lines(int run) const;
    bool idle() const { return !busy_; }

Q_SIGNALS:
    void made();

private:
    struct Made {
        std::shared_ptr<const workspace::LiveRun> record;
        workspace::RunCurveOptions options;
        RunLines lines;
    };
    void begin();

    Worker* worker_;
    std::map<int, Made> made_;
    Records wanted_;
    workspace::RunCurveOptions options_;
    bool busy_ = false, again_ = false;
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets
