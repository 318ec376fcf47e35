// SPDX-License-Identifier: GPL-3.0-or-later
// Every generator of core/data is a task.
#include <algorithm>

#include "core/base/error.h"
#include "core/data/catalog.h"
#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {
namespace {

data::Generator generator_of(const Request& request, const Task& task, std::int64_t length) {
    data::GeneratorSettings settings;
    settings.name = task.name;
    if (const auto it = request.generator_options.find(task.name); it != request.generator_options.end())
        settings.options = it->second;
    return data::make_generator(settings, length);
}

class Generated final : public TaskKind {
public:
    std::string words(bool) const override { return "generated tasks"; }

    std::vector<std::int64_t> lengths(const Request& request, const Task& task,
                                      const model::ModelConfig& config) const override {
        if (!request.lengths.empty()) return request.lengths;
        if (const auto it = request.generator_lengths.find(task.name); it != request.generator_lengths.end())
            return {it->second};
        const std::int64_t longest = config.max_positions > 0 ? config.max_positions : 2048;
        const std::int64_t usual = data::find_dataset(task.name).sequence_length;
        return {std::min(longest, usual > 0 ? usual : 256)};
    }

    void run(TaskRun& run, const Unit& unit) const override {
        const auto source =
            generator_of(run.request(), *unit.task, unit.length).source(data::Split::validation, run.request().seed);
        const TokenScores scores = score_source(run.model(), *source, run.request().sequences, run.request().score,
                                                [&run](double share) { run.report(share); });
        if (scores.targets() > 0) run.check_finite(scores.loss());
        Rows out = run.rows_of(unit.task->name, unit.length, scores.targets());
        out.add("accuracy", scores.accuracy(), scores.accuracy_error());
        out.add("loss", scores.loss(), scores.loss_error());
    }

protected:
    void check_at(const Request& request, const Task& task, const model::ModelConfig& config,
                  std::int64_t length) const override {
        const auto pieces = static_cast<std::int64_t>(generator_of(request, task, length).pieces.size());
        if (pieces <= config.vocabulary) return;
        throw Error(
            ErrorCode::usage, task.name,
            "expected a model with at least the task's " + std::to_string(pieces) + " tokens",
            "found a vocabulary of " + std::to_string(config.vocabulary) + " (the task's options may make it smaller)");
    }
};

}  // namespace

void add_generator_tasks(std::vector<Task>& list) {
    static const Generated generated;
    for (const data::Dataset& set : data::datasets()) {
        const auto taken = [&](const Task& task) { return task.name == set.name; };
        if (!set.is_generator || std::any_of(list.begin(), list.end(), taken)) continue;
        list.push_back({set.name, set.description, &generated, "accuracy, loss"});
    }
}

}  // namespace headscope::evaluation
