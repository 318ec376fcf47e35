// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/tasks.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text/text.h"
#include "core/evaluation/harness/harness_tasks.h"
#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {

std::vector<std::int64_t> TaskKind::lengths(const Request& request, const Task& /*task*/,
                                            const model::ModelConfig& config) const {
    if (!request.lengths.empty()) return request.lengths;
    const std::int64_t longest = config.max_positions > 0 ? config.max_positions : 2048;
    return {request.training_length > 0 ? std::min(longest, request.training_length) : longest};
}

void TaskKind::check(const Request& request, const Task& task, const model::ModelConfig& config,
                     bool has_documents) const {
    check_inputs(request, task, config);
    if (on_text() && !has_documents)
        throw Error(ErrorCode::usage, task.name,
                    request.trained_on.empty()
                        ? "expected text to score (--data, or a run's held-out part)"
                        : "expected the task " + request.trained_on +
                              ", the generated data that the model was trained on, or text to score (--data)",
                    request.trained_on.empty() ? "found none" : "found a task on text, and no text");
    const auto all = lengths(request, task, config);
    check_count(task, all.size());
    for (const std::int64_t length : all) {
        check_length(request, config, task.name, length);
        check_at(request, task, config, length);
    }
}

const std::vector<Task>& tasks() {
    static const std::vector<Task> all = [] {
        std::vector<Task> list;
        for (const auto add : {add_text_tasks, add_labelled_tasks, add_question_tasks, add_speed_task, add_ruler_tasks,
                               add_harness_tasks, add_generator_tasks})
            add(list);
        return list;
    }();
    return all;
}

const Task& find_task(const std::string& name) {
    std::vector<std::string> names;
    for (const Task& task : tasks()) {
        if (task.name == name) return task;
        names.push_back(task.name);
    }
    throw choice_error(names, name, "task");
}

bool reads_labelled_items(const std::string& task) {
    LabelledWork none;
    const TaskKind& kind = *find_task(task).kind;
    return kind.items(none) != nullptr || kind.asks_questions();
}

std::vector<std::string> expanded_tasks(const std::vector<std::string>& names) {
    std::vector<std::string> all;
    const auto add = [&](const std::string& name) {
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    };
    for (const std::string& name : names) {
        if (!find_task(name).kind->is_set()) {
            add(name);
            continue;
        }
        for (const TaskSet& set : task_sets())
            if (set.name == name) std::for_each(set.tasks.begin(), set.tasks.end(), add);
    }
    return all;
}

std::vector<const HarnessTask*> harness_tasks_of(const std::vector<std::string>& tasks) {
    std::vector<const HarnessTask*> some;
    for (const std::string& name : tasks)
        if (const HarnessTask* task = find_harness_task(name)) some.push_back(task);
    return some;
}

std::vector<const data::RulerTask*> ruler_tasks_of(const std::vector<std::string>& tasks) {
    std::vector<const data::RulerTask*> some;
    const auto add = [&](const data::RulerTask& task) {
        if (std::find(some.begin(), some.end(), &task) == some.end()) some.push_back(&task);
    };
    for (const std::string& name : tasks) {
        for (const data::RulerTask& task : data::ruler_tasks())
            if (name == task.name || (name == kRetrieval && task.retrieval)) add(task);
    }
    return some;
}

std::int64_t most_read(const Request& request, const model::ModelConfig& config) {
    return request.score.beyond_positions && !config.positions_are_a_table ? 0 : config.max_positions;
}

void check_request(const Request& request, const model::ModelConfig& config, bool has_documents) {
    if (request.tasks.empty()) throw Error(ErrorCode::usage, "--task", "expected a task", "found none");
    for (const std::string& name : request.tasks) {
        const Task& task = find_task(name);
        task.kind->check(request, task, config, has_documents);
    }
    check_ruler(request, config);
}

void check_length(const Request& request, const model::ModelConfig& config, const std::string& name,
                  std::int64_t length) {
    const std::int64_t most = most_read(request, config);
    if (length >= 1 && (most == 0 || length <= most)) return;
    throw Error(ErrorCode::limit, name,
                "expected a context length of 1 to " + std::to_string(config.max_positions) + " tokens",
                "found " + std::to_string(length));
}

TaskRun::TaskRun(model::Model& model, const Request& request, std::span<const NamedText> texts,
                 std::int64_t model_index, Progress& progress)
    : model_(model), request_(request), model_index_(model_index), progress_(progress) {
    const auto add = [&](const Task& task, const std::vector<std::int64_t>& lengths) {
        for (const std::int64_t length : lengths) {
            if (!task.kind->on_text()) units_.push_back({&task, length});
            if (task.kind->on_text())
                for (const NamedText& text : texts) units_.push_back({&task, length, &text});
        }
    };
    const auto add_usual = [&](const Task& task) { add(task, task.kind->lengths(request, task, model.config())); };
    for (const std::string& name : request.tasks)
        if (find_task(name).kind->shares_pass()) shared_.push_back(name);
    if (!shared_.empty()) add_usual(find_task(shared_.front()));
    for (const std::string& name : request.tasks)
        if (const Task& task = find_task(name); !task.kind->runs_apart()) add_usual(task);
    for (const data::RulerTask* task : ruler_tasks_of(request.tasks))
        add(find_task(task->name), ruler_lengths(request, *task, model.config()));
}

std::vector<store::EvaluationResult> TaskRun::run() {
    if (!request_.harness.tasks.empty()) run_harness_tasks(*this);
    for (unit_ = 0; unit_ < units_.size(); ++unit_) {
        report(0);
        units_[unit_].task->kind->run(*this, units_[unit_]);
        report(1);
    }
    if (std::find(request_.tasks.begin(), request_.tasks.end(), kRetrieval) != request_.tasks.end())
        add_retrieval(*this);
    return std::move(rows_);
}

Rows TaskRun::rows_of(const std::string& task, std::int64_t length, std::int64_t count, const NamedText* text) {
    Rows rows(model_index_, task, length, count, rows_);
    if (text) rows.of_text(text->name, text->sha256);
    return rows;
}

void TaskRun::report(double share) {
    report(static_cast<double>(unit_ + request_.harness.tasks.size()) + share, what());
}

void TaskRun::report(double done, const std::string& what) {
    progress_.advance(done, static_cast<double>(units_.size() + request_.harness.tasks.size()), what);
}

std::string TaskRun::what() const {
    const Unit& unit = units_[unit_];
    return unit.task->name + " at " + std::to_string(unit.length) +
           (unit.text ? " on " + escaped(unit.text->name) : "");
}

void TaskRun::check_finite(double loss) const {
    if (std::isfinite(loss)) return;
    throw Error(ErrorCode::limit, what(), "expected finite logits of the model",
                "found others: its weights are not finite, or too large for the numbers' type");
}

std::vector<store::EvaluationResult> run_tasks(model::Model& model, const Request& request,
                                               std::span<const NamedText> texts, std::int64_t model_index,
                                               Progress& progress) {
    check_request(request, model.config(), !texts.empty());
    return TaskRun(model, request, texts, model_index, progress).run();
}

}  // namespace headscope::evaluation
