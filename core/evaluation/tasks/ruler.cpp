// SPDX-License-Identifier: GPL-3.0-or-later
// RULER's tasks, whose answers the model generates.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/evaluation/metrics/python_text.h"
#include "core/evaluation/tasks/run.h"
#include "core/store/evaluation/evaluation_texts.h"

namespace headscope::evaluation {
namespace {

/// An answer of RULER's as it is scored: without white space around it, control characters as line ends.
std::string printable(const std::string& answer) {
    std::string text(trimmed(answer));
    for (char& c : text)
        if (c >= 0 && c < ' ') c = '\n';
    return std::string(trimmed(text));
}

void hand_out(const TaskRun& run, const data::RulerTask& task, std::int64_t length, std::int64_t number,
              AskedItem asked, const std::string& answer, double value) {
    HarnessItem item;
    item.prompt = std::move(asked.prompt);
    item.answers = std::move(asked.outputs);
    ItemScore score;
    score.generated = answer;
    score.metrics = {{"score", value}};
    score.right = value == 1;
    run.request().on_answer({task.name, HarnessKind::said, length, 0, number, item, score, {}});
}

class Ruler final : public TaskKind {
public:
    std::string words(bool given) const override { return given ? "RULER's tasks of --data" : "RULER's tasks, made"; }
    bool offered() const override { return true; }
    bool runs_apart() const override { return true; }
    /// check_ruler() checks all of them once.
    void check(const Request&, const Task&, const model::ModelConfig&, bool) const override {}

    void run(TaskRun& run, const Unit& unit) const override {
        const data::RulerTask& task = *data::find_ruler_task(unit.task->name);
        check_scorable(run.model());
        std::vector<AskedItem> items;
        std::optional<data::RulerMaker> maker;
        if (const auto read = run.request().said.files.find(task.name); read != run.request().said.files.end()) {
            for (const AskedItem& item : read->second)
                if (item.max_length == unit.length) items.push_back(item);
        } else {
            maker.emplace(ruler_maker(run.request().said, task, unit.length, run.request().seed));
        }
        const std::int64_t count = maker ? run.request().items : std::ssize(items);
        const std::int64_t most = most_read(run.request(), run.model().config());
        std::vector<double> scores;
        std::int64_t cut = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            if (run.request().score.cancellation) run.request().score.cancellation->check();
            AskedItem item;
            if (maker) {
                const data::RulerItem made = maker->item(i);
                if (run.request().said.on_item) run.request().said.on_item(task.name, made);
                item = {data::ruler_prompt(task, made.input, made.gen_prefix), made.outputs, unit.length};
            } else {
                item = std::move(items[static_cast<std::size_t>(i)]);
            }
            const GeneratedAnswer answer = generated_answer(run.model(), run.request().said, item.prompt,
                                                            task.answer_tokens, most, run.request().score);
            cut += answer.cut ? 1 : 0;
            scores.push_back(data::ruler_score(printable(answer.text), item.outputs));
            if (run.request().on_answer)
                hand_out(run, task, unit.length, i, std::move(item), answer.text, scores.back());
            run.report(static_cast<double>(i + 1) / static_cast<double>(count));
        }
        const AnswerScore score = mean_score(scores);
        const bool hidden = maker && task.essays && run.request().said.essays;
        run.rows_of(task.name, unit.length, score.items)
            .of_text(hidden ? store::short_word(run.request().said.essays->name) : "", "")
            .of_cut(cut)
            .add("score", score.mean, score.error);
    }
};

}  // namespace

/// The lengths that a task's items were made for, or are to be.
std::vector<std::int64_t> ruler_lengths(const Request& request, const data::RulerTask& task,
                                        const model::ModelConfig& config) {
    const auto read = request.said.files.find(task.name);
    if (read == request.said.files.end()) {
        const Task& listed = find_task(task.name);
        return listed.kind->lengths(request, listed, config);
    }
    std::set<std::int64_t> lengths;
    for (const AskedItem& item : read->second) lengths.insert(item.max_length);
    return {lengths.begin(), lengths.end()};
}

void check_ruler(const Request& request, const model::ModelConfig& config) {
    for (const data::RulerTask* task : ruler_tasks_of(request.tasks)) {
        if (!request.said.tokenizer)
            throw Error(ErrorCode::usage, task->name, "expected a checkpoint with a tokenizer", "found none");
        if (request.said.files.contains(task->name)) continue;
        for (const std::int64_t length : ruler_lengths(request, *task, config)) {
            check_length(request, config, task->name, length);
            ruler_maker(request.said, *task, length, request.seed);  // throws where no item fits
        }
    }
}

void add_retrieval(TaskRun& run) {
    struct Sum {
        double value = 0, square = 0;
        std::int64_t tasks = 0, items = 0, cut = 0;
    };
    std::map<std::int64_t, Sum> sums;
    for (const auto& row : run.rows()) {
        const data::RulerTask* task = data::find_ruler_task(row.task);
        if (task == nullptr || !task->retrieval) continue;
        Sum& sum = sums[row.length];
        sum.value += row.value;
        sum.square += row.error * row.error;
        sum.items += row.count;
        sum.cut += row.cut;
        ++sum.tasks;
    }
    const std::int64_t all = std::ssize(ruler_tasks_of({kRetrieval}));
    for (const auto& [length, sum] : sums) {
        if (sum.tasks != all) continue;
        const auto n = static_cast<double>(all);
        run.rows_of(kRetrieval, length, sum.items)
            .of_cut(sum.cut)
            .add("score", sum.value / n, std::sqrt(sum.square) / n);
    }
}

void add_ruler_tasks(std::vector<Task>& list) {
    static const Ruler ruler;
    for (const data::RulerTask& task : data::ruler_tasks()) list.push_back({task.name, task.summary, &ruler, "score"});
    list.push_back({kRetrieval, "RULER: the eight niah_* and their mean", &ruler, "score"});
}

}  // namespace headscope::evaluation
