// SPDX-License-Identifier: GPL-3.0-or-later
// lm-eval's tasks, and sets of tasks.
#include <algorithm>
#include <chrono>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/evaluation/harness/harness_tasks.h"
#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {
namespace {

/// "312 of 1000 items, 21.4 items/s", updated at each hundredth of them: a log has a line for each text.
class ItemPace {
public:
    const std::string& text(std::int64_t done, std::int64_t items) {
        const std::int64_t part = items > 0 ? 100 * done / items : 0;
        if (part == part_) return text_;
        part_ = part;
        const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
        char pace[32] = "";
        if (done > 0 && seconds > 0)
            std::snprintf(pace, sizeof pace, ", %.3g items/s", static_cast<double>(done) / seconds);
        text_ = std::to_string(done) + " of " + std::to_string(items) + " items" + pace;
        return text_;
    }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
    std::int64_t part_ = -1;
    std::string text_;
};

class Harness final : public TaskKind {
public:
    std::string words(bool) const override { return "lm-eval's tasks"; }
    bool runs_apart() const override { return true; }

    void check(const Request& request, const Task& task, const model::ModelConfig& config, bool) const override {
        const auto& all = request.harness.tasks;
        if (std::none_of(all.begin(), all.end(), [&](const auto& items) { return items->task->name == task.name; }))
            throw Error(ErrorCode::usage, task.name, "expected a folder with its data set (--data)", "found none");
        if (!config.causal)
            throw Error(ErrorCode::usage, task.name, "expected a decoder or an encoder-decoder",
                        "found " + config.family);
        // Without --length items are cut to what lm-eval would cut them to, and looked at one by one.
        if (!request.lengths.empty()) check_length(request, config, task.name, request.harness.tokens.length);
    }
    void run(TaskRun&, const Unit&) const override {}  // run_harness_tasks() runs all of them first
};

class Set final : public TaskKind {
public:
    std::string words(bool) const override { return {}; }
    bool is_set() const override { return true; }
    bool runs_apart() const override { return true; }
    void run(TaskRun&, const Unit&) const override {}  // expanded_tasks() names its tasks
};

}  // namespace

void run_harness_tasks(TaskRun& run) {
    const auto tasks = static_cast<double>(run.request().harness.tasks.size());
    ItemPace pace;
    const HarnessRun all{run.request().harness,
                         run.request().said,
                         run.request().score,
                         most_read(run.request(), run.model().config()),
                         run.model_index(),
                         run.request().on_answer,
                         [&](std::int64_t done, std::int64_t items) {
                             run.report(tasks * static_cast<double>(done) / static_cast<double>(items),
                                        pace.text(done, items));
                         }};
    for (const auto& row : run_harness(run.model(), all)) run.rows().push_back(row);
}

void add_harness_tasks(std::vector<Task>& list) {
    static const Harness harness;
    static const Set sets;
    for (const HarnessTask& task : harness_tasks())
        list.push_back({task.name, task.summary, &harness, joined_text(task.metrics, ", ")});
    for (const TaskSet& set : task_sets())
        list.push_back({set.name, set.summary + ": " + joined_text(set.tasks, ", "), &sets, ""});
}

}  // namespace headscope::evaluation
