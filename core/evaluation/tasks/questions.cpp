// SPDX-License-Identifier: GPL-3.0-or-later
// SQuAD 1.1 and 2.0.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/evaluation/tasks/run.h"
#include "core/model/objectives/objective.h"

namespace headscope::evaluation {
namespace {

constexpr std::int64_t kWindowTokens = 384;  ///< by default (Devlin et al. 2019)

/// --task-option squad.stride=64, squad_v2.threshold=1.5 and so on.
QuestionOptions question_options(const Request& request, const std::string& task) {
    QuestionOptions options;
    const auto given = request.generator_options.find(task);
    if (given == request.generator_options.end()) return options;
    constexpr double most = 1 << 20, any = std::numeric_limits<double>::max();
    for (const auto& [name, value] : given->second) {
        const std::string place = task + "." + name;
        const auto whole = [&](std::int64_t& to, double least) {
            check_number(Option(name, to, {}, least, most), value, place);
            to = static_cast<std::int64_t>(value);
        };
        if (name == "stride") {
            whole(options.stride, 0);
        } else if (name == "best") {
            whole(options.best, 1);
        } else if (name == "answer") {
            whole(options.longest, 1);
        } else if (name == "threshold" && task == kSquad2) {
            check_number(Option(name, options.threshold, {}, -any, any), value, place);
            options.threshold = value;
        } else {
            throw Error(
                ErrorCode::usage, "--task-option",
                "expected " + task + ".stride, best" + (task == kSquad2 ? ", answer or threshold" : " or answer"),
                "found " + escaped(place));
        }
    }
    return options;
}

class Questions final : public TaskKind {
public:
    std::string words(bool) const override { return "squad, squad_v2"; }
    bool asks_questions() const override { return true; }

    std::vector<std::int64_t> lengths(const Request& request, const Task&,
                                      const model::ModelConfig& config) const override {
        if (!request.lengths.empty()) return request.lengths;
        return {config.max_positions > 0 ? std::min(kWindowTokens, config.max_positions) : kWindowTokens};
    }

    void run(TaskRun& run, const Unit& unit) const override {
        const Request& request = run.request();
        const QuestionOptions options = question_options(request, unit.task->name);
        for (const QuestionItems& items : request.questions) {
            if (items.task != unit.task->name) continue;
            const auto said = answer_questions(run.model(), request.labelled.tokenizer, items, unit.length, options,
                                               request.score, [&run](double share) { run.report(share); });
            add_question_rows(items, said, unit.length, run.model_index(), request.on_answer, run.rows());
        }
    }

protected:
    void check_inputs(const Request& request, const Task& task, const model::ModelConfig& config) const override {
        model::make_objective("spans", model::kSpanEnds)->check(config);
        if (!request.labelled.tokenizer.tokenizer)
            throw Error(ErrorCode::usage, task.name, "expected a checkpoint with a tokenizer", "found none");
        if (std::none_of(request.questions.begin(), request.questions.end(),
                         [&](const QuestionItems& items) { return items.task == task.name; }))
            throw Error(ErrorCode::usage, task.name, "expected files of questions (--data FILE)", "found none");
    }
    void check_at(const Request& request, const Task& task, const model::ModelConfig&,
                  std::int64_t length) const override {
        check_question_length(request.labelled.tokenizer, length, question_options(request, task.name).stride);
    }
};

}  // namespace

void add_question_rows(const QuestionItems& items, std::span<const SaidAnswer> said, std::int64_t length,
                       std::int64_t model, const OnAnswer& answer, std::vector<store::EvaluationResult>& rows) {
    for (const NamedValue& one : score_questions(items, said, length, answer))
        Rows(model, items.name, length, one.count, rows)
            .of_text(items.text, items.sha256)
            .of_cut(one.cut)
            .add(one.metric, one.value, one.error);
}

void add_question_tasks(std::vector<Task>& list) {
    static const Questions questions;
    list.push_back({kSquad, "Answers in contexts: SQuAD 1.1, --data FILE", &questions, "exact_match, f1"});
    list.push_back({kSquad2, "Answers in contexts, or none: SQuAD 2.0, --data FILE", &questions,
                    "exact, f1, HasAns_exact, HasAns_f1, NoAns_exact, NoAns_f1, best_exact, best_exact_thresh, "
                    "best_f1, best_f1_thresh"});
}

}  // namespace headscope::evaluation
