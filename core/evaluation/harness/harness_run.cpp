// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/evaluation/harness/longbench.h"

namespace headscope::evaluation {
namespace {

constexpr double kMostAnswerTokens = 1 << 20;

bool is_said(const HarnessItems& items) {
    return items.task->kind == HarnessKind::said;
}

void check_positions(const HarnessRequest& request, std::int64_t most, const std::string& place) {
    // The last one is not read; of an encoder-decoder's target it is the start token instead.
    const std::int64_t read =
        std::max(std::ssize(request.source), std::ssize(request.ids) - (request.source.empty() ? 1 : 0));
    if (most == 0 || read <= most) return;
    throw Error(ErrorCode::limit, place,
                "expected at most " + std::to_string(most) + " tokens, the model's positions (--length " +
                    std::to_string(most) + " cuts what is longer)",
                "found " + std::to_string(read));
}

/// A page's windows as one request; others as they are.
std::vector<RequestScore> joined(HarnessKind kind, std::span<RequestScore> scores) {
    if (kind != HarnessKind::page)
        return {std::make_move_iterator(scores.begin()), std::make_move_iterator(scores.end())};
    std::vector<RequestScore> page(1);
    for (const RequestScore& window : scores) {
        page[0].loglikelihood += window.loglikelihood;
        page[0].greedy = page[0].greedy && window.greedy;
        page[0].each.insert(page[0].each.end(), window.each.begin(), window.each.end());
    }
    return page;
}

/// Numbers of what has diverged would be missing from the results, or lowest among options, without a word.
void check_finite(const ItemScore& score, const std::string& place) {
    for (const RequestScore& request : score.requests) {
        if (std::isfinite(request.loglikelihood)) continue;
        throw Error(ErrorCode::limit, place, "expected finite logits of the model",
                    "found others: its weights are not finite, or too large for the numbers' type");
    }
}

/// Rows of one model's tasks.
class ResultRows {
public:
    ResultRows(std::int64_t model, std::int64_t length, std::int64_t shots)
        : model_(model), length_(length), shots_(shots) {}

    /// Rows of the items of each length that the task has.
    void add_length_classes(const HarnessItems& items, const std::vector<ItemScore>& scores) {
        for (const std::string& length : length_classes()) {
            std::vector<HarnessValue> values;
            for (std::size_t metric = 0; metric < items.task->metrics.size(); ++metric) {
                std::vector<double> each;
                for (std::size_t i = 0; i < scores.size(); ++i)
                    if (items.items[i].subset == length) each.push_back(scores[i].metrics[metric].second);
                if (each.empty()) continue;
                const AnswerScore mean = mean_score(each);
                values.push_back({items.task->metrics[metric], mean.mean, mean.error, mean.items});
            }
            if (values.empty()) continue;
            add(items, values, 0, length);
        }
    }

    void add_longbench_means() {
        const std::vector<store::EvaluationResult> means = longbench_means(rows_);
        rows_.insert(rows_.end(), means.begin(), means.end());
    }

    void add(const HarnessItems& items, const std::vector<HarnessValue>& values, std::int64_t cut,
             const std::string& subset = "") {
        for (const HarnessValue& value : values) {
            rows_.push_back(
                {model_, items.task->name, value.metric, length_, value.value, value.error, value.count, shots_});
            rows_.back().cut = cut;
            rows_.back().subset = subset;
            if (!items.files.empty()) rows_.back().data_sha256 = items.files.front().sha256;
        }
    }

    std::vector<store::EvaluationResult> take() { return std::move(rows_); }

private:
    std::int64_t model_, length_, shots_;
    std::vector<store::EvaluationResult> rows_;
};

class Running {
public:
    Running(model::Model& model, const HarnessRun& run)
        : model_(model), run_(run), work_(run.work), rows_(run.model, run.work.tokens.length, run.work.shots) {
        for (const auto& items : work_.tasks)
            (is_said(*items) ? said_items_ : scored_items_) += std::ssize(items->items);
    }

    std::vector<store::EvaluationResult> run() {
        const std::int64_t requests = std::ssize(work_.ids.requests);
        if (requests > 0)
            scores_ = score_requests(model_, work_.ids.requests, run_.score,
                                     [&](std::int64_t done) { tell(scored_items_ * done / requests); });
        for (std::size_t task = 0; task < work_.tasks.size(); ++task)
            run_task(*work_.tasks[task], work_.ids.ends[task]);
        rows_.add_longbench_means();
        return rows_.take();
    }

private:
    void tell(std::int64_t done) {
        if (run_.progress) run_.progress(done, scored_items_ + said_items_);
    }

    void run_task(const HarnessItems& items, const std::vector<std::size_t>& ends) {
        const HarnessTask& task = *items.task;
        std::vector<ItemScore> scores(items.items.size());
        std::int64_t cut = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            if (run_.score.cancellation) run_.score.cancellation->check();
            const HarnessItem& item = items.items[i];
            std::span<const HarnessRequest> requests;
            if (is_said(items)) {
                GeneratedAnswer said = answer(task, item.prompt);
                scores[i].generated = std::move(said.text);
                cut += said.cut ? 1 : 0;
                tell(scored_items_ + ++said_);
            } else {
                requests = std::span(work_.ids.requests).subspan(begin_, ends[i] - begin_);
                scores[i].requests = joined(task.kind, std::span(scores_).subspan(begin_, requests.size()));
                begin_ = ends[i];
                cut += std::any_of(requests.begin(), requests.end(), [](const auto& one) { return one.cut; }) ? 1 : 0;
                check_finite(scores[i], item.place);
            }
            judge(task, item, scores[i]);
            if (run_.on_answer)
                run_.on_answer({task.name, task.kind, work_.tokens.length, work_.shots, static_cast<std::int64_t>(i),
                                item, scores[i], requests});
        }
        const auto values = values_of(task, items.items, scores, work_.resamples, run_.score.cancellation);
        rows_.add(items, values, cut);
        if (is_longbench(task)) rows_.add_length_classes(items, scores);
        if (!work_.baselines) return;
        auto guesses = baselines_of(task, items.items);
        if (guesses.empty()) guesses = guesses_of(task, items.items, scores, model_.config().vocabulary);
        if (const auto adjusted = chance_adjusted(values, guesses)) rows_.add(items, {*adjusted}, cut);
        rows_.add(items, guesses, 0);
    }

    GeneratedAnswer answer(const HarnessTask& task, const std::string& prompt) {
        const std::int64_t most = run_.most > 0 ? std::min(run_.most, work_.tokens.length) : work_.tokens.length;
        if (task.rules == LongBenchRules::thudm)
            return whole_answer(model_, run_.said, prompt, task.answer_tokens, most, ends_at_line(task), run_.score);
        return generated_answer(model_, run_.said, prompt, task.answer_tokens, most, run_.score, task.stops);
    }

    model::Model& model_;
    const HarnessRun& run_;
    const HarnessWork& work_;
    std::int64_t scored_items_ = 0, said_items_ = 0, said_ = 0;
    std::vector<RequestScore> scores_;
    std::size_t begin_ = 0;  ///< the next item's first request
    ResultRows rows_;
};

}  // namespace

HarnessTask with_options(HarnessTask task, const std::map<std::string, double>& options) {
    for (const auto& [name, value] : options) {
        if (name != "tokens" || task.kind != HarnessKind::said)
            throw Error(ErrorCode::usage, "--task-option",
                        "expected " + (task.kind == HarnessKind::said ? task.name + ".tokens" : "none of " + task.name),
                        "found " + task.name + "." + escaped(name));
        check_number(Option(name, task.answer_tokens, {}, 1, kMostAnswerTokens), value, task.name + "." + name);
        task.answer_tokens = static_cast<std::int64_t>(value);
        if (task.name == "squad_completion") task.stops = {"\n"};
    }
    return task;
}

HarnessIds encode_items(const HarnessWork& work, const GeneratedAnswers& said, std::int64_t most,
                        const Cancellation* cancellation) {
    HarnessIds ids;
    for (const auto& items : work.tasks) {
        auto& ends = ids.ends.emplace_back();
        for (const HarnessItem& item : items->items) {
            if (cancellation) cancellation->check();
            if (is_said(*items) && prompt_ids(said, item.prompt).empty())
                throw Error(ErrorCode::usage, item.place, "expected a prompt of at least one token", "found none");
            const std::size_t first = ids.requests.size();
            for (const TextPair& pair : item.requests) {
                if (items->task->kind == HarnessKind::page) {
                    auto windows = encode_page(work.tokens, pair.continuation, item.place);
                    std::move(windows.begin(), windows.end(), std::back_inserter(ids.requests));
                } else {
                    ids.requests.push_back(encode_request(work.tokens, pair, item.place));
                }
            }
            for (std::size_t i = first; i < ids.requests.size(); ++i)
                check_positions(ids.requests[i], most, item.place);
            ends.push_back(ids.requests.size());
        }
    }
    return ids;
}

std::vector<store::EvaluationResult> score_answers(const HarnessItems& items, const std::vector<std::string>& answers,
                                                   const std::function<void(const AnsweredItem&)>& on_answer) {
    const HarnessTask& task = *items.task;
    if (!is_said(items))
        throw Error(ErrorCode::usage, "--predictions", "expected a task whose answers are generated",
                    "found " + escaped(task.name));
    if (answers.size() != items.items.size())
        throw Error(
            ErrorCode::usage, "--predictions",
            "expected an answer to each of the " + std::to_string(items.items.size()) + " items of " + task.name,
            "found " + std::to_string(answers.size()));
    std::vector<ItemScore> scores(answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        scores[i].generated = answers[i];
        judge(task, items.items[i], scores[i]);
        if (on_answer)
            on_answer({task.name, task.kind, 0, 0, static_cast<std::int64_t>(i), items.items[i], scores[i], {}});
    }
    ResultRows rows(0, 0, 0);
    const auto values = values_of(task, items.items, scores, 0);
    rows.add(items, values, 0);
    if (is_longbench(task)) rows.add_length_classes(items, scores);
    return rows.take();
}

std::vector<store::EvaluationResult> longbench_means(std::span<const store::EvaluationResult> rows) {
    const std::vector<std::string> set = longbench_set();
    std::map<std::string, std::vector<const store::EvaluationResult*>> scores;  // by length class
    for (const store::EvaluationResult& row : rows)
        if (row.metric == "score" && std::find(set.begin(), set.end(), row.task) != set.end())
            scores[row.subset].push_back(&row);
    std::vector<store::EvaluationResult> means;
    for (const auto& [length, each] : scores) {
        if (each.size() != set.size()) continue;
        const store::EvaluationResult& first = *each.front();
        store::EvaluationResult mean{
            first.model, kLongBenchSet, "score", first.length, 0, std::numeric_limits<double>::quiet_NaN(),
            0,           first.shots};
        for (const store::EvaluationResult* row : each) {
            mean.value += row->value;
            mean.count += row->count;
        }
        mean.value /= static_cast<double>(set.size());
        mean.subset = length;
        means.push_back(std::move(mean));
    }
    return means;
}

std::vector<store::EvaluationResult> run_harness(model::Model& model, const HarnessRun& run) {
    return Running(model, run).run();
}

}  // namespace headscope::evaluation
