// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <string>

#include "core/figures/figure_options.h"
#include "widgets/latest_work.h"

namespace headscope::store {
struct AskRecord;
}

namespace headscope::widgets {

/// A recipe of an ask file with its options.
struct AskFigureRequest {
    std::string recipe;
    figures::FigureOptions options;
    std::shared_ptr<const store::AskRecord> record;
    bool operator==(const AskFigureRequest&) const = default;
};

struct MadeAskFigure {
    AskFigureRequest request;
    std::shared_ptr<const figures::FigureData> figure;
    QString failure;  ///< why there is no figure
};

/// Makes figures of ask files on a worker: one at a time, the latest request next.
class AskMaker : public QObject {
    Q_OBJECT
public:
    explicit AskMaker(Worker* worker, QObject* parent = nullptr);

    /// Does nothing where this was requested last.
    void request(const AskFigureRequest& wanted) { work_.request(wanted); }
    const MadeAskFigure& made_figure() const { return work_.made(); }

Q_SIGNALS:
    void made();

private:
    LatestWork<AskFigureRequest, MadeAskFigure> work_;
};

}  // namespace headscope::widgets
