// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/questions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include <c10/core/InferenceMode.h>

#include "core/base/error.h"
#include "core/base/json/json_records.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/data/batch/span_windows.h"
#include "core/data/source/question_reader.h"
#include "core/data/special_tokens.h"
#include "core/evaluation/data_records.h"
#include "core/evaluation/generated_answers.h"
#include "core/evaluation/metrics/answer_spans.h"
#include "core/evaluation/sources.h"
#include "core/training/trainer/learner.h"

namespace headscope::evaluation {
namespace {

data::ItemForm question_form(const data::ChosenTokenizer& tokenizer, std::int64_t length, std::int64_t stride) {
    data::ObjectiveSettings objective;
    objective.kind = "spans";
    objective.stride = stride;
    return {objective, data::TokenCode(tokenizer.tokenizer), data::special_ids(*tokenizer.tokenizer, tokenizer.files),
            data::frame_of(*tokenizer.tokenizer), length};
}

/// Indices of the `count` largest values, the largest first; of equals the later one, as numpy's argsort has them.
std::vector<std::int64_t> largest_of(std::span<const float> values, std::int64_t count) {
    std::vector<std::int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + std::min(count, std::ssize(order));
    std::partial_sort(order.begin(), end, order.end(), [&](std::int64_t a, std::int64_t b) {
        const float one = values[static_cast<std::size_t>(a)], other = values[static_cast<std::size_t>(b)];
        return one != other ? one > other : a > b;
    });
    order.erase(end, order.end());
    return order;
}

/// The best pair of tokens of a question's windows so far.
struct FoundSpan {
    bool any = false;
    float score = 0;
    float none = std::numeric_limits<float>::infinity();  ///< score of the first token, the least of all windows
    data::ByteRange place{};
};

/// A window on its way through the model.
struct AskedWindow {
    std::size_t question = 0;
    data::SpanWindow window;
    std::int64_t context_at = 0;
    std::shared_ptr<const std::vector<data::ByteRange>> tokens;  ///< of the whole context
    std::size_t length = 0;                                      ///< tokens that the model reads
};

class SpanFinder {
public:
    SpanFinder(model::Model& model, const data::ItemForm& form, const QuestionOptions& options,
               const ScoreOptions& score, std::size_t questions, const Share& progress)
        : form_(form), options_(options), passes_(model, score, progress), found_(questions) {}

    void add(AskedWindow window, data::SpoiltSequence sequence) {
        windows_.push_back(std::move(window));
        sequences_.push_back(std::move(sequence));
        if (std::ssize(windows_) >= std::max<std::int64_t>(1, passes_.options().batch_tokens / form_.length)) flush();
    }
    /// GroupedPasses::report().
    void report(double share) { passes_.report(share); }
    void finish() {
        flush();
        passes_.finish();
    }

    const FoundSpan& found(std::size_t question) const { return found_[question]; }

private:
    void flush() {
        if (windows_.empty()) return;
        if (const Cancellation* cancellation = passes_.options().cancellation) cancellation->check();
        const data::DataBatch batch = form_.code.batch(std::exchange(sequences_, {}), form_.special.padding);
        passes_.add(training::batch_of(batch, passes_.model().config()),
                    [this, windows = std::exchange(windows_, {})](const at::Tensor& hidden, const model::Batch&) {
                        choose(windows, hidden);
                    });
    }

    void choose(const std::vector<AskedWindow>& windows, const at::Tensor& hidden) {
        const at::Tensor logits = passes_.model().logits(hidden.flatten(0, 1)).contiguous();
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const float* row =
                logits.const_data_ptr<float>() + static_cast<std::int64_t>(i) * hidden.size(1) * model::kSpanEnds;
            std::vector<float> starts, ends;
            for (std::size_t t = 0; t < windows[i].length; ++t) {
                starts.push_back(row[2 * t]);
                ends.push_back(row[2 * t + 1]);
            }
            choose(windows[i], starts, ends);
        }
    }

    void choose(const AskedWindow& asked, std::span<const float> starts, std::span<const float> ends) {
        FoundSpan& best = found_[asked.question];
        best.none = std::min(best.none, starts[0] + ends[0]);
        const auto is_finite = [](float value) { return std::isfinite(value); };
        if (!std::all_of(starts.begin(), starts.end(), is_finite) || !std::all_of(ends.begin(), ends.end(), is_finite))
            throw Error(ErrorCode::limit, "question " + std::to_string(asked.question),
                        "expected finite logits of the model",
                        "found others: its weights are not finite, or too large for the numbers' type");
        const std::vector<std::int64_t> last = largest_of(ends, options_.best);
        for (const std::int64_t start : largest_of(starts, options_.best)) {
            const std::int64_t first = start - asked.context_at;
            if (first < 0 || first >= asked.window.tokens) continue;
            for (const std::int64_t end : last) {
                const std::int64_t tokens = end - start + 1;
                if (tokens < 1 || tokens > options_.longest || first + tokens > asked.window.tokens) continue;
                const float score = starts[static_cast<std::size_t>(start)] + ends[static_cast<std::size_t>(end)];
                if (best.any && score <= best.score) continue;
                const auto token = [&](std::int64_t number) {
                    return (*asked.tokens)[static_cast<std::size_t>(asked.window.begin + number)];
                };
                best.any = true;
                best.score = score;
                best.place = {token(first)[0], token(first + tokens - 1)[1]};
            }
        }
    }

    const data::ItemForm& form_;
    const QuestionOptions& options_;
    GroupedPasses passes_;
    std::vector<FoundSpan> found_;
    std::vector<AskedWindow> windows_;
    std::vector<data::SpoiltSequence> sequences_;
};

/// Metrics of some of the questions; none of no question.
class MeanRows {
public:
    explicit MeanRows(std::int64_t cut) : cut_(cut) {}
    void add(const std::string& metric, const std::vector<double>& scores) {
        if (scores.empty()) return;
        const AnswerScore mean = mean_score(scores);
        rows.push_back({metric, mean.mean, mean.error, std::ssize(scores), cut_});
    }
    void add_value(const std::string& metric, double value, std::int64_t count) {
        rows.push_back({metric, value, std::numeric_limits<double>::quiet_NaN(), count, cut_});
    }
    std::vector<NamedValue> rows;

private:
    std::int64_t cut_;
};

void hand_out_question(const QuestionItems& items, std::size_t number, const SaidAnswer& said, std::int64_t length,
                       const std::vector<std::pair<std::string, double>>& metrics, const OnAnswer& answer) {
    if (!answer) return;
    const data::Question& one = items.questions[number];
    HarnessItem item;
    item.prompt = one.text + "\n" + one.context;
    item.answers = one.answers;
    ItemScore score;
    score.generated = said.text;
    score.metrics = metrics;
    score.right = metrics.front().second == 1;
    const AskedQuestion question{one.id, said.windows, said.no_answer};
    answer(
        {items.name, HarnessKind::said, length, 0, static_cast<std::int64_t>(number), item, score, {}, {}, &question});
}

}  // namespace

QuestionItems read_question_items(const std::string& data, const std::string& task, const Cancellation& cancellation) {
    const NamedData named = named_data(data);
    QuestionItems items;
    items.task = task;
    items.name = named.data == data ? task : named.name;
    items.file = named.data;
    std::error_code ignored;
    if (std::filesystem::is_directory(items.file, ignored)) {
        HarnessTask place;
        place.name = place.data_set = task;
        place.configuration = task == kSquad ? "plain_text" : task;
        items.file = find_data_file(items.file, place, "validation");
    }
    items.text = items.file.stem().string();
    const CancellationScope scope(cancellation);
    items.sha256 = read_data_records(items.file, "questions", [&](const JsonView& record) {
        data::take_questions(record, [&](data::Question question) {
            if (task == kSquad && question.answers.empty())
                record.refuse(ErrorCode::usage, "expected an answer to each question of squad, unlike squad_v2");
            items.questions.push_back(std::move(question));
        });
        return true;
    });
    if (items.questions.empty())
        throw Error(ErrorCode::usage, shown(items.file), "expected at least one question", "found none");
    return items;
}

void check_question_length(const data::ChosenTokenizer& tokenizer, std::int64_t length, std::int64_t stride) {
    data::check(question_form(tokenizer, length, stride));
}

std::vector<SaidAnswer> answer_questions(model::Model& model, const data::ChosenTokenizer& tokenizer,
                                         const QuestionItems& items, std::int64_t length,
                                         const QuestionOptions& options, const ScoreOptions& score,
                                         const Share& progress) {
    const c10::InferenceMode inference;
    const data::ItemForm form = question_form(tokenizer, length, options.stride);
    data::check(form);
    const auto numbers = [&](const std::string& text) {
        const std::vector<std::int32_t> narrow = form.code.encode(text, score.cancellation);
        return std::vector<std::int64_t>(narrow.begin(), narrow.end());
    };
    SpanFinder finder(model, form, options, score, items.questions.size(), progress);
    std::vector<SaidAnswer> said(items.questions.size());
    for (std::size_t q = 0; q < said.size(); ++q) {
        const data::Question& one = items.questions[q];
        const std::vector<std::int64_t> question = numbers(one.text), context = numbers(one.context);
        const auto tokens = std::make_shared<const std::vector<data::ByteRange>>(
            data::token_ranges(*tokenizer.tokenizer, one.context, score.cancellation));
        const std::int64_t asked = std::ssize(question) / form.code.width();
        const data::SpanCut cut = data::cut_context(form, asked, std::ssize(*tokens));
        said[q].windows = cut.windows();
        said[q].cut = cut.question < asked;
        for (std::int64_t w = 0; w < cut.windows(); ++w) {
            const data::SpanWindow window = cut.window(w);
            data::SpanSequence sequence = data::span_sequence(form, cut, window, question, context);
            const std::size_t read = sequence.tokens.ids.size();
            finder.add({q, window, sequence.context_at, tokens, read}, std::move(sequence.tokens));
        }
        finder.report(static_cast<double>(q + 1) / static_cast<double>(said.size()));
    }
    finder.finish();
    const bool may_lack = items.task == kSquad2;
    for (std::size_t q = 0; q < said.size(); ++q) {
        const FoundSpan& best = finder.found(q);
        if (best.any)
            said[q].text = items.questions[q].context.substr(
                static_cast<std::size_t>(best.place[0]),
                static_cast<std::size_t>(std::max<std::int64_t>(best.place[1] - best.place[0], 0)));
        else if (!may_lack)
            said[q].text = "empty";
        if (!may_lack) continue;
        said[q].no_answer = static_cast<double>(best.none) - static_cast<double>(best.any ? best.score : 0.0F);
        if (*said[q].no_answer > options.threshold) said[q].text.clear();
    }
    return said;
}

std::vector<NamedValue> score_questions(const QuestionItems& items, std::span<const SaidAnswer> said,
                                        std::int64_t length, const OnAnswer& answer) {
    const bool may_lack = items.task == kSquad2;
    const char* const exact_name = may_lack ? "exact" : "exact_match";
    std::vector<double> exact, f1, no_answer;
    std::vector<double> parts[2][2];  // by whether there is an answer: exact, f1
    std::vector<ThresholdItem> each;
    std::int64_t cut = 0;
    for (std::size_t q = 0; q < items.questions.size(); ++q) {
        const data::Question& one = items.questions[q];
        const SpanScore score =
            may_lack ? span_score(said[q].text, one.answers) : first_span_score(said[q].text, one.answers);
        exact.push_back(score.exact);
        f1.push_back(score.f1);
        const std::size_t part = one.answers.empty() ? 0 : 1;
        parts[part][0].push_back(score.exact);
        parts[part][1].push_back(score.f1);
        cut += said[q].cut ? 1 : 0;
        if (said[q].no_answer) each.push_back({*said[q].no_answer, part == 1, !said[q].text.empty()});
        hand_out_question(items, q, said[q], length, {{exact_name, score.exact}, {"f1", score.f1}}, answer);
    }
    MeanRows made(cut);
    made.add(exact_name, exact);
    made.add("f1", f1);
    if (!may_lack) return std::move(made.rows);
    made.add("HasAns_exact", parts[1][0]);
    made.add("HasAns_f1", parts[1][1]);
    made.add("NoAns_exact", parts[0][0]);
    made.add("NoAns_f1", parts[0][1]);
    if (each.size() != exact.size()) return std::move(made.rows);
    for (const auto& [metric, scores] : {std::pair("best_exact", &exact), std::pair("best_f1", &f1)}) {
        const BestThreshold best = best_threshold(each, *scores);
        made.add_value(metric, best.score, std::ssize(exact));
        made.add_value(std::string(metric) + "_thresh", best.threshold, std::ssize(exact));
    }
    return std::move(made.rows);
}

std::vector<SaidAnswer> read_stored_answers(const std::filesystem::path& file, const QuestionItems& items,
                                            std::string& sha256) {
    std::map<std::string, SaidAnswer> by_id;
    const auto add = [&](const JsonView& where, const std::string& id, SaidAnswer said) {
        if (!by_id.emplace(id, std::move(said)).second)
            where.refuse(ErrorCode::usage, "expected one answer of question " + escaped(id, 40));
    };
    sha256 = read_json_records(file, "answers", [&](const JsonView& record) {
        if (record.object().has("generated")) {
            SaidAnswer said{record.at("generated").string()};
            if (const auto none = record.find("no_answer")) said.no_answer = none->number();
            add(record, record.at("id").string(), std::move(said));
            return true;
        }
        for (const std::string& id : record.keys()) add(record, id, SaidAnswer{record.at(id).string()});
        return true;
    });
    std::vector<SaidAnswer> said;
    for (const data::Question& question : items.questions) {
        const auto found = by_id.find(question.id);
        if (found == by_id.end())
            throw Error(ErrorCode::usage, shown(file), "expected an answer of question " + escaped(question.id, 40),
                        "found none");
        said.push_back(found->second);
    }
    if (by_id.size() != said.size())
        throw Error(ErrorCode::usage, shown(file), "expected answers of " + std::to_string(said.size()) + " questions",
                    "found those of " + std::to_string(by_id.size()));
    return said;
}

}  // namespace headscope::evaluation
