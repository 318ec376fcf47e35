// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/figure_options.h"
#include "widgets/latest_work.h"

namespace headscope::store {
struct Evaluation;
}

namespace headscope::figures {
class TaskTable;
}

namespace headscope::widgets {

/// Recipe, options and records of a view of evaluations.
struct EvaluationRequest {
    std::string recipe;
    figures::FigureOptions options;
    std::vector<std::shared_ptr<const store::Evaluation>> records;
    bool operator==(const EvaluationRequest&) const = default;
};

/// The recipe's figure of them, its numbers, and what there is to choose from.
struct MadeEvaluation {
    EvaluationRequest wish;
    figures::FigureOptions options;  ///< those of the request that these records have
    std::shared_ptr<const figures::FigureData> figure;
    std::shared_ptr<const figures::Table> table;
    std::shared_ptr<const figures::TaskTable> tasks_by_model;  ///< of the recipe tasks
    QString failure;                                           ///< why there is no figure
    std::vector<std::string> tasks;
    std::vector<std::string> metrics;   ///< of the chosen task, or of all
    std::vector<std::int64_t> lengths;  ///< at which what is chosen was measured
};

/// Makes figures of evaluations on a worker: one at a time, the latest next.
class EvaluationMaker : public QObject {
    Q_OBJECT
public:
    explicit EvaluationMaker(Worker* worker, QObject* parent = nullptr);

    /// Does nothing where this was requested last.
    void request(const EvaluationRequest& wanted) { work_.request(wanted); }
    const MadeEvaluation& made_figure() const { return work_.made(); }
    bool idle() const { return work_.idle(); }

Q_SIGNALS:
    void made();

private:
    LatestWork<EvaluationRequest, MadeEvaluation> work_;
};

}  // namespace headscope::widgets
