// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/evaluation_maker.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/make_figure.h"
#include "core/figures/task_table.h"

namespace headscope::widgets {
namespace {

template <class T>
void add_once(std::vector<T>& list, const T& one) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
}

/// Lists the choices, and keeps those of the request that exist.
void choose(MadeEvaluation& made) {
    const figures::EvaluationGroups groups(made.wish.records, made.wish.recipe);
    const auto& all = groups.measured();
    for (const auto& what : all) add_once(made.tasks, what.task);
    auto& options = made.options;
    if (std::find(made.tasks.begin(), made.tasks.end(), options.task) == made.tasks.end()) options.task.clear();
    for (const auto& what : all)
        if (options.task.empty() || what.task == options.task) add_once(made.metrics, what.metric);
    if (std::find(made.metrics.begin(), made.metrics.end(), options.metric) == made.metrics.end())
        options.metric.clear();
    // A length that all panels have.
    bool first = true;
    for (const auto& what : groups.chosen(options)) {
        const auto lengths = groups.lengths(what);
        if (first) made.lengths.assign(lengths.begin(), lengths.end());
        std::erase_if(made.lengths, [&](std::int64_t length) { return !lengths.contains(length); });
        first = false;
    }
    if (options.length && std::find(made.lengths.begin(), made.lengths.end(), *options.length) == made.lengths.end())
        options.length.reset();
}

MadeEvaluation make(const EvaluationRequest& wish) {
    MadeEvaluation made;
    made.wish = wish;
    made.options = wish.options;
    try {
        choose(made);
        figures::FigureInputs inputs;
        inputs.evaluations = wish.records;
        auto figure = std::make_shared<figures::FigureData>(figures::make_figure(wish.recipe, inputs, made.options));
        made.table = std::make_shared<const figures::Table>(figure->table());
        if (wish.recipe == "tasks")
            made.tasks_by_model = std::make_shared<const figures::TaskTable>(
                figures::EvaluationGroups(wish.records, wish.recipe), made.options);
        made.figure = std::move(figure);
    } catch (...) {
        made.failure = QString::fromUtf8(current_error("evaluations").what());
    }
    return made;
}

}  // namespace

EvaluationMaker::EvaluationMaker(Worker* worker, QObject* parent)
    : QObject(parent), work_(this, worker, make, [this] { Q_EMIT made(); }) {}

}  // namespace headscope::widgets
