// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/speed.h"

#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {
namespace {

class Speed final : public TaskKind {
public:
    std::string words(bool) const override { return "speed"; }

    void run(TaskRun& run, const Unit& unit) const override {
        const Request& request = run.request();
        for (const SpeedValue& one : measure_speed(run.model(), request.speed, unit.length, request.score))
            run.rows_of(unit.task->name, unit.length, one.runs).add(one.metric, one.milliseconds, one.error);
    }
};

}  // namespace

void add_speed_task(std::vector<Task>& list) {
    static const Speed speed;
    list.push_back(
        {"speed", "Milliseconds a sample of a forward pass and of a training step", &speed, "forward_ms, step_ms"});
}

}  // namespace headscope::evaluation
