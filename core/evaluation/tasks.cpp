// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/tasks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/text.h"
#include "core/data/catalog.h"
#include "core/evaluation/harness/harness_tasks.h"
#include "core/evaluation/harness/python_text.h"
#include "core/evaluation/position_score.h"
#include "core/store/evaluation_texts.h"

namespace headscope::evaluation {
namespace {

constexpr double kNoTaskError = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kPerplexity = "perplexity";
constexpr const char* kNextToken = "next_token_accuracy";
constexpr const char* kPositions = "position_perplexity";
constexpr const char* kRetrieval = "ruler_retrieval";
constexpr const char* kBucket = "bucket";
constexpr std::int64_t kBuckets = 32;  ///< of a block, if nothing is said

/// The lengths of a task: as asked, or the one that suits it.
std::vector<std::int64_t> lengths_of(const Request& request, const Task& task, const model::ModelConfig& config) {
    if (!request.lengths.empty()) return request.lengths;
    const std::int64_t longest = config.max_positions > 0 ? config.max_positions : 2048;
    if (task.kind != TaskKind::generator)
        return {request.training_length > 0 ? std::min(longest, request.training_length) : longest};
    if (const auto it = request.generator_lengths.find(task.name); it != request.generator_lengths.end())
        return {it->second};
    const std::int64_t usual = data::find_dataset(task.name).sequence_length;
    return {std::min(longest, usual > 0 ? usual : 256)};
}

data::Generator generator_of(const Request& request, const Task& task, std::int64_t length) {
    data::GeneratorSettings settings;
    settings.name = task.name;
    if (const auto it = request.generator_options.find(task.name); it != request.generator_options.end())
        settings.options = it->second;
    return data::make_generator(settings, length);
}

/// Positions that are put together, of blocks of that length.
std::int64_t bucket_of(const Request& request, std::int64_t length) {
    const auto given = request.generator_options.find(kPositions);
    std::int64_t bucket = (length + kBuckets - 1) / kBuckets;
    if (given == request.generator_options.end()) return bucket;
    for (const auto& [name, value] : given->second) {
        if (name != kBucket)
            throw Error(ErrorCode::usage, "--task-option", std::string("expected ") + kPositions + "." + kBucket,
                        "found " + std::string(kPositions) + "." + escaped(name));
        if (!(value >= 1 && value <= static_cast<double>(length)) || value != std::floor(value))
            throw Error(ErrorCode::usage, std::string(kPositions) + "." + kBucket,
                        "expected a whole number from 1 to the length, " + std::to_string(length),
                        "found " + std::to_string(value));
        bucket = static_cast<std::int64_t>(value);
    }
    return bucket;
}

/// The lengths that a task's items were made for, or are to be.
std::vector<std::int64_t> said_lengths(const Request& request, const data::RulerTask& task,
                                       const model::ModelConfig& config) {
    const auto read = request.said.files.find(task.name);
    if (read == request.said.files.end()) return lengths_of(request, find_task(task.name), config);
    std::set<std::int64_t> lengths;
    for (const AskedItem& item : read->second) lengths.insert(item.max_length);
    return {lengths.begin(), lengths.end()};
}

void check_length(const Request& request, const model::ModelConfig& config, const std::string& name,
                  std::int64_t length) {
    const std::int64_t most = most_read(request, config);
    if (length >= 1 && (most == 0 || length <= most)) return;
    throw Error(ErrorCode::limit, name,
                "expected a context length of 1 to " + std::to_string(config.max_positions) + " tokens",
                "found " + std::to_string(length));
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

/// An answer of RULER's as it is scored: without white space around it, control characters as line ends.
std::string printable(const std::string& answer) {
    std::string text(trimmed(answer));
    for (char& c : text)
        if (c >= 0 && c < ' ') c = '\n';
    return std::string(trimmed(text));
}

/// "312 of 1000 items, 21.4 items/s", updated at each hundredth of them: a log has a line for each text.
class ItemPace {
public:
    const std::string& tell(std::int64_t done, std::int64_t items) {
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

const std::vector<LabelledItems>& items_of(const Request& request, const Task& task) {
    return task.kind == TaskKind::classes ? request.labelled.classes : request.labelled.translations;
}

/// Numbers of what has diverged would be missing from the results without a word.
void check_finite(double loss, const std::string& what) {
    if (std::isfinite(loss)) return;
    throw Error(ErrorCode::limit, what, "expected finite logits of the model",
                "found others: its weights are not finite, or too large for the numbers' type");
}

class Rows {
public:
    Rows(std::int64_t model, const std::string& task, std::int64_t length, std::int64_t count,
         std::vector<store::EvaluationResult>& rows)
        : rows_(rows) {
        row_.model = model;
        row_.task = task;
        row_.length = length;
        row_.count = count;
    }
    Rows& of_text(const std::string& name, const std::string& sha256) {
        row_.text = name;
        row_.data_sha256 = sha256;
        return *this;
    }
    Rows& of_cut(std::int64_t items) {
        row_.cut = items;
        return *this;
    }
    void add(const std::string& metric, double value, double error = kNoTaskError) {
        if (std::isnan(value)) return;
        row_.metric = metric;
        row_.value = value;
        row_.error = error;
        rows_.push_back(row_);
    }

private:
    store::EvaluationResult row_;
    std::vector<store::EvaluationResult>& rows_;
};

void add_text_rows(const std::string& task, const TextScore& score, Rows rows) {
    const TokenScores& tokens = score.tokens;
    if (task == kNextToken) {
        rows.add("accuracy", tokens.accuracy(), tokens.accuracy_error());
        rows.add("accuracy_of_five", tokens.in_five(), tokens.in_five_error());
        return;
    }
    // exp is steep: the error of the mean loss is carried over by its slope.
    const double perplexity = std::exp(tokens.loss());
    rows.add("token_perplexity", perplexity, perplexity * tokens.loss_error());
    rows.add("loss", tokens.loss(), tokens.loss_error());
    const auto scaled = [&](double loss) { return tokens.loss_error() * loss / tokens.loss(); };
    const double word = score.word_loss(), byte = score.byte_loss();
    rows.add("word_perplexity", std::exp(word), std::exp(word) * scaled(word));
    rows.add("byte_perplexity", std::exp(byte), std::exp(byte) * scaled(byte));
    rows.add("bits_per_byte", byte / std::log(2.0), scaled(byte) / std::log(2.0));
}

}  // namespace

const std::vector<Task>& tasks() {
    static const std::vector<Task> all = [] {
        std::vector<Task> list{
            {kPerplexity, "How well a text's tokens are predicted, in windows as lm-eval-harness rolls them",
             TaskKind::windows, "token_perplexity, loss, word_perplexity, byte_perplexity, bits_per_byte"},
            {kNextToken, "Share of a text's tokens that have the largest logit, and that are among the five largest",
             TaskKind::windows, "accuracy, accuracy_of_five"},
            {kPositions, "How well they are predicted at each distance from the begin of a block of --length",
             TaskKind::positions, "token_perplexity"}};
        list.push_back({"masked", "How well an encoder says the masked tokens of a text (BERT's 15 %)",
                        TaskKind::spoilt, "loss, accuracy"});
        list.push_back({"shuffle_random",
                        "How well an encoder tells which tokens of a text changed places or were replaced",
                        TaskKind::spoilt, "loss, accuracy"});
        list.push_back({"classify", "Classes, or a number, of texts and pairs in JSON lines: --data NAME=FILE.jsonl",
                        TaskKind::classes, "accuracy, f1, matthews, spearman, loss"});
        list.push_back({"translation", "What an encoder-decoder makes of source texts in JSON lines, and BLEU of it",
                        TaskKind::translation, "bleu, loss"});
        list.push_back({"speed", "Milliseconds a sample of a forward pass and of a training step", TaskKind::speed,
                        "forward_ms, step_ms"});
        for (const data::RulerTask& task : data::ruler_tasks())
            list.push_back({task.name, task.summary, TaskKind::said, "score"});
        list.push_back({kRetrieval, "RULER: the eight niah_* and their mean", TaskKind::said, "score"});
        for (const HarnessTask& task : harness_tasks())
            list.push_back({task.name, task.summary, TaskKind::harness, joined(task.metrics)});
        for (const TaskSet& set : task_sets())
            list.push_back({set.name, set.summary + ": " + joined(set.tasks), TaskKind::set, ""});
        for (const data::Dataset& set : data::datasets()) {
            const auto taken = [&](const Task& task) { return task.name == set.name; };
            if (!set.is_generator || std::any_of(list.begin(), list.end(), taken)) continue;
            list.push_back({set.name, set.description, TaskKind::generator, "accuracy, loss"});
        }
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
    const std::string nearest = nearest_word(name, names);
    throw Error(ErrorCode::usage, "task",
                "expected one of " + list_text(names, 30) + (nearest.empty() ? "" : " (" + nearest + "?)"),
                "found " + escaped(name));
}

std::vector<std::string> expanded_tasks(const std::vector<std::string>& names) {
    std::vector<std::string> all;
    const auto add = [&](const std::string& name) {
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    };
    for (const std::string& name : names) {
        if (find_task(name).kind != TaskKind::set) {
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
        if (task.kind == TaskKind::said) continue;
        if (task.kind == TaskKind::harness) {
            const auto& all = request.harness.tasks;
            if (std::none_of(all.begin(), all.end(), [&](const auto& items) { return items->task->name == name; }))
                throw Error(ErrorCode::usage, name, "expected a folder with its data set (--data)", "found none");
            if (!config.causal)
                throw Error(ErrorCode::usage, name, "expected a decoder or an encoder-decoder",
                            "found " + config.family);
            // Without --length items are cut to what lm-eval would cut them to, and looked at one by one.
            if (!request.lengths.empty()) check_length(request, config, name, request.harness.tokens.length);
            continue;
        }
        if (task.kind == TaskKind::spoilt || task.on_labelled_items()) {
            check_head(name, config);
            if (!request.labelled.tokenizer.tokenizer)
                throw Error(ErrorCode::usage, name, "expected a checkpoint with a tokenizer", "found none");
            if (task.kind == TaskKind::translation && !request.score.skip_layers.empty())
                throw Error(ErrorCode::usage, "--skip", "expected none beside translation", "found some");
        }
        if (task.on_labelled_items() && items_of(request, task).empty())
            throw Error(ErrorCode::usage, name, "expected files of JSON lines (--data NAME=FILE)", "found none");
        if (task.on_text() && !has_documents)
            throw Error(ErrorCode::usage, name,
                        request.trained_on.empty()
                            ? "expected text to score (--data, or a run's held-out part)"
                            : "expected the task " + request.trained_on +
                                  ", the generated data that the model was trained on, or text to score (--data)",
                        request.trained_on.empty() ? "found none" : "found a task on text, and no text");
        const auto lengths = lengths_of(request, task, config);
        if (task.kind == TaskKind::positions && lengths.size() > 1)
            throw Error(ErrorCode::usage, name, "expected one --length, that of its blocks",
                        "found " + std::to_string(lengths.size()));
        for (const std::int64_t length : lengths) {
            check_length(request, config, name, length);
            if (task.kind == TaskKind::positions && length < 2)
                throw Error(ErrorCode::usage, name, "expected blocks of at least 2 tokens",
                            "found " + std::to_string(length));
            if (task.kind == TaskKind::positions) bucket_of(request, length);
            if (task.kind != TaskKind::generator) continue;
            const auto pieces = static_cast<std::int64_t>(generator_of(request, task, length).pieces.size());
            if (pieces > config.vocabulary)
                throw Error(ErrorCode::usage, name,
                            "expected a model with at least the task's " + std::to_string(pieces) + " tokens",
                            "found a vocabulary of " + std::to_string(config.vocabulary) +
                                " (the task's options may make it smaller)");
        }
    }
    for (const data::RulerTask* task : ruler_tasks_of(request.tasks)) {
        if (!request.said.tokenizer)
            throw Error(ErrorCode::usage, task->name, "expected a checkpoint with a tokenizer", "found none");
        if (request.said.files.contains(task->name)) continue;
        for (const std::int64_t length : said_lengths(request, *task, config)) {
            check_length(request, config, task->name, length);
            ruler_maker(request.said, *task, length, request.seed);  // throws where no item fits
        }
    }
}

namespace {

/// A task at a length, on one text where it is on text.
struct Unit {
    std::string task;
    std::int64_t length;
    const NamedText* text = nullptr;
};

/// Runs units one after the other.
class TaskRun {
public:
    TaskRun(model::Model& model, const Request& request, std::span<const NamedText> texts, std::int64_t model_index,
            Progress& progress)
        : model_(model), request_(request), model_index_(model_index), progress_(progress) {
        const auto add = [&](const std::string& name, const std::vector<std::int64_t>& lengths) {
            for (const std::int64_t length : lengths) {
                if (!find_task(name).on_text()) units_.push_back({name, length});
                if (find_task(name).on_text())
                    for (const NamedText& text : texts) units_.push_back({name, length, &text});
            }
        };
        const auto usual = [&](const std::string& name) {
            return lengths_of(request, find_task(name), model.config());
        };
        // Windows serve all tasks of theirs: one pass a length.
        for (const std::string& name : request.tasks)
            if (find_task(name).kind == TaskKind::windows) windows_.push_back(name);
        if (!windows_.empty()) add(windows_.front(), usual(windows_.front()));
        for (const std::string& name : request.tasks) {
            const TaskKind kind = find_task(name).kind;
            const bool apart = kind == TaskKind::windows || kind == TaskKind::said || kind == TaskKind::harness;
            if (!apart && kind != TaskKind::set) add(name, usual(name));
        }
        for (const data::RulerTask* task : ruler_tasks_of(request.tasks))
            add(task->name, said_lengths(request, *task, model.config()));
    }

    std::vector<store::EvaluationResult> run() {
        if (!request_.harness.tasks.empty()) run_harness_tasks();
        for (unit_ = 0; unit_ < units_.size(); ++unit_) {
            const auto& [task, length, text] = units_[unit_];
            tell(0);
            switch (find_task(task).kind) {
                case TaskKind::windows:
                    run_windows(length, *text);
                    break;
                case TaskKind::positions:
                    run_positions(task, length, *text);
                    break;
                case TaskKind::generator:
                    run_generator(task, length);
                    break;
                case TaskKind::said:
                    run_said(*data::find_ruler_task(task), length);
                    break;
                case TaskKind::spoilt:
                    run_spoilt(task, length, *text);
                    break;
                case TaskKind::classes:
                case TaskKind::translation:
                    run_labelled(find_task(task), length);
                    break;
                case TaskKind::speed:
                    run_speed(length);
                    break;
                case TaskKind::harness:
                case TaskKind::set:
                    break;  // those are no units
            }
            tell(1);
        }
        if (std::find(request_.tasks.begin(), request_.tasks.end(), kRetrieval) != request_.tasks.end())
            add_retrieval();
        return std::move(rows_);
    }

private:
    std::string what() const {
        const Unit& unit = units_[unit_];
        return unit.task + " at " + std::to_string(unit.length) + (unit.text ? " on " + escaped(unit.text->name) : "");
    }
    void tell(double share) { advance(static_cast<double>(unit_ + request_.harness.tasks.size()) + share, what()); }
    void advance(double done, const std::string& what) {
        progress_.advance(done, static_cast<double>(units_.size() + request_.harness.tasks.size()), what);
    }
    Rows rows_of(const std::string& task, std::int64_t length, std::int64_t count, const NamedText* text = nullptr) {
        Rows rows(model_index_, task, length, count, rows_);
        if (text) rows.of_text(text->name, text->sha256);
        return rows;
    }

    void run_harness_tasks() {
        const auto tasks = static_cast<double>(request_.harness.tasks.size());
        ItemPace pace;
        const HarnessRun run{request_.harness,
                             request_.said,
                             request_.score,
                             most_read(request_, model_.config()),
                             model_index_,
                             request_.on_answer,
                             [&](std::int64_t done, std::int64_t items) {
                                 advance(tasks * static_cast<double>(done) / static_cast<double>(items),
                                         pace.tell(done, items));
                             }};
        for (const auto& row : run_harness(model_, run)) rows_.push_back(row);
    }

    void run_windows(std::int64_t length, const NamedText& text) {
        TextOptions options;
        options.length = length;
        options.stride = std::min(request_.stride, length);
        options.prefix = request_.prefix;
        options.most_tokens = request_.most_tokens;
        options.score = request_.score;
        const TextScore score = score_text(model_, *text.documents, options, [this](double share) { tell(share); });
        if (score.tokens.targets() == 0)
            throw Error(ErrorCode::usage, text.documents->name(), "expected at least two tokens of text",
                        "found fewer");
        check_finite(score.tokens.loss(), what());
        for (const std::string& name : windows_)
            add_text_rows(name, score, rows_of(name, length, score.tokens.targets(), &text));
    }

    void run_positions(const std::string& task, std::int64_t length, const NamedText& text) {
        PositionOptions options;
        options.length = length;
        options.bucket = bucket_of(request_, length);
        options.most_tokens = request_.most_tokens;
        options.score = request_.score;
        const auto buckets = score_positions(model_, *text.documents, options, [this](double share) { tell(share); });
        for (const PositionBucket& bucket : buckets) {
            check_finite(bucket.loss, what());
            const double perplexity = std::exp(bucket.loss);
            rows_of(task, bucket.last, bucket.tokens, &text)
                .add("token_perplexity", perplexity, perplexity * bucket.error);
        }
    }

    void run_generator(const std::string& task, std::int64_t length) {
        const auto source =
            generator_of(request_, find_task(task), length).source(data::Split::validation, request_.seed);
        const TokenScores scores = score_source(
            model_, *source, request_.sequences, request_.score,
            [this](std::int64_t done) { tell(static_cast<double>(done) / static_cast<double>(request_.sequences)); });
        if (scores.targets() > 0) check_finite(scores.loss(), what());
        Rows out = rows_of(task, length, scores.targets());
        out.add("accuracy", scores.accuracy(), scores.accuracy_error());
        out.add("loss", scores.loss(), scores.loss_error());
    }

    void run_spoilt(const std::string& task, std::int64_t length, const NamedText& text) {
        const TokenScores scores =
            score_spoilt(model_, task, *text.documents, request_.labelled, length, request_.seed, request_.most_tokens,
                         request_.score, [this](double share) { tell(share); });
        if (scores.targets() > 0) check_finite(scores.loss(), what());
        Rows out = rows_of(task, length, scores.targets(), &text);
        out.add("loss", scores.loss(), scores.loss_error());
        out.add("accuracy", scores.accuracy(), scores.accuracy_error());
    }

    void run_labelled(const Task& task, std::int64_t length) {
        const auto run = task.kind == TaskKind::classes ? classify : translate;
        const auto& all = items_of(request_, task);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto values =
                run(model_, request_.labelled, all[i], length, request_.score, request_.on_answer,
                    [&](double share) { tell((static_cast<double>(i) + share) / static_cast<double>(all.size())); });
            for (const NamedValue& one : values)
                rows_of(all[i].name, length, one.count)
                    .of_text(all[i].text, all[i].sha256)
                    .of_cut(one.cut)
                    .add(one.metric, one.value, one.error);
        }
    }

    void run_speed(std::int64_t length) {
        for (const SpeedValue& one : measure_speed(model_, request_.speed, length, request_.score))
            rows_of("speed", length, one.runs).add(one.metric, one.milliseconds, one.error);
    }

    void run_said(const data::RulerTask& task, std::int64_t length) {
        check_scorable(model_);
        std::vector<AskedItem> items;
        std::optional<data::RulerMaker> maker;
        if (const auto read = request_.said.files.find(task.name); read != request_.said.files.end()) {
            for (const AskedItem& item : read->second)
                if (item.max_length == length) items.push_back(item);
        } else {
            maker.emplace(ruler_maker(request_.said, task, length, request_.seed));
        }
        const std::int64_t count = maker ? request_.items : std::ssize(items);
        const std::int64_t most = most_read(request_, model_.config());
        std::vector<double> scores;
        std::int64_t cut = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            if (request_.score.cancellation) request_.score.cancellation->check();
            AskedItem item;
            if (maker) {
                const data::RulerItem made = maker->item(i);
                if (request_.said.on_item) request_.said.on_item(task.name, made);
                item = {data::ruler_prompt(task, made.input, made.gen_prefix), made.outputs, length};
            } else {
                item = std::move(items[static_cast<std::size_t>(i)]);
            }
            const SaidAnswer answer =
                said_answer(model_, request_.said, item.prompt, task.answer_tokens, most, request_.score);
            cut += answer.cut ? 1 : 0;
            scores.push_back(data::ruler_score(printable(answer.text), item.outputs));
            if (request_.on_answer) hand_out(task, length, i, std::move(item), answer.text, scores.back());
            tell(static_cast<double>(i + 1) / static_cast<double>(count));
        }
        const SaidScore score = mean_score(scores);
        const bool hidden = maker && task.essays && request_.said.essays;
        rows_of(task.name, length, score.items)
            .of_text(hidden ? store::short_word(request_.said.essays->name) : "", "")
            .of_cut(cut)
            .add("score", score.mean, score.error);
    }

    void hand_out(const data::RulerTask& task, std::int64_t length, std::int64_t number, AskedItem asked,
                  const std::string& answer, double value) {
        HarnessItem item;
        item.prompt = std::move(asked.prompt);
        item.answers = std::move(asked.outputs);
        ItemScore score;
        score.generated = answer;
        score.metrics = {{"score", value}};
        score.right = value == 1;
        request_.on_answer({task.name, HarnessKind::said, length, 0, number, item, score, {}});
    }

    /// The mean of the eight at each length that all of them have.
    void add_retrieval() {
        struct Sum {
            double value = 0, square = 0;
            std::int64_t tasks = 0, items = 0, cut = 0;
        };
        std::map<std::int64_t, Sum> sums;
        for (const auto& row : rows_) {
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
            rows_of(kRetrieval, length, sum.items).of_cut(sum.cut).add("score", sum.value / n, std::sqrt(sum.square) / n);
        }
    }

    model::Model& model_;
    const Request& request_;
    std::int64_t model_index_;
    Progress& progress_;
    std::vector<std::string> windows_;
    std::vector<Unit> units_;
    std::size_t unit_ = 0;
    std::vector<store::EvaluationResult> rows_;
};

}  // namespace

std::vector<store::EvaluationResult> run_tasks(model::Model& model, const Request& request,
                                               std::span<const NamedText> texts, std::int64_t model_index,
                                               Progress& progress) {
    check_request(request, model.config(), !texts.empty());
    return TaskRun(model, request, texts, model_index, progress).run();
}

}  // namespace headscope::evaluation
