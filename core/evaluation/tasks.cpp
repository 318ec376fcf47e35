// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/text.h"
#include "core/data/catalog.h"

namespace headscope::evaluation {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kPerplexity = "perplexity";
constexpr const char* kNextToken = "next_token_accuracy";

/// The lengths of a task: as asked, or the one that suits it.
std::vector<std::int64_t> lengths_of(const Request& request, const Task& task, const model::ModelConfig& config) {
    if (!request.lengths.empty()) return request.lengths;
    const std::int64_t longest = config.max_positions > 0 ? config.max_positions : 2048;
    if (task.on_text) return {request.training_length > 0 ? std::min(longest, request.training_length) : longest};
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

/// Numbers of what has diverged would be missing from the results without a word.
void check_finite(const TokenScores& scores, const std::string& what) {
    if (scores.targets() == 0 || std::isfinite(scores.loss())) return;
    throw Error(ErrorCode::limit, what, "expected finite logits of the model",
                "found others: its weights are not finite, or too large for the numbers' type");
}

class Rows {
public:
    Rows(std::int64_t model, std::string task, std::int64_t length, std::int64_t count,
         std::vector<store::EvaluationResult>& rows)
        : model_(model), length_(length), count_(count), task_(std::move(task)), rows_(rows) {}
    void add(const std::string& metric, double value, double error = kNone) {
        if (std::isnan(value)) return;
        rows_.push_back({model_, task_, metric, length_, value, error, count_});
    }

private:
    std::int64_t model_, length_, count_;
    std::string task_;
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
            {kPerplexity, "How well a text's tokens are predicted, in windows as lm-eval-harness rolls them", true,
             "token_perplexity, loss, word_perplexity, byte_perplexity, bits_per_byte"},
            {kNextToken, "Share of a text's tokens that have the largest logit, and that are among the five largest",
             true, "accuracy, accuracy_of_five"}};
        for (const data::Dataset& set : data::datasets()) {
            if (!set.is_generator) continue;
            list.push_back({set.name, set.description, false, "accuracy, loss"});
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

void check_request(const Request& request, const model::ModelConfig& config, bool has_documents) {
    if (request.tasks.empty()) throw Error(ErrorCode::usage, "--task", "expected a task", "found none");
    for (const std::string& name : request.tasks) {
        const Task& task = find_task(name);
        if (task.on_text && !has_documents)
            throw Error(ErrorCode::usage, name,
                        request.trained_on.empty()
                            ? "expected text to score (--data, or a run's held-out part)"
                            : "expected the task " + request.trained_on +
                                  ", the generated data that the model was trained on, or text to score (--data)",
                        request.trained_on.empty() ? "found none" : "found a task on text, and no text");
        for (const std::int64_t length : lengths_of(request, task, config)) {
            const bool endless =
                config.max_positions == 0 || (request.score.beyond_positions && !config.positions_are_a_table);
            if (length < 1 || (!endless && length > config.max_positions))
                throw Error(ErrorCode::limit, name,
                            "expected a context length of 1 to " + std::to_string(config.max_positions) + " tokens",
                            "found " + std::to_string(length));
            if (task.on_text) continue;
            const auto pieces = static_cast<std::int64_t>(generator_of(request, task, length).pieces.size());
            if (pieces > config.vocabulary)
                throw Error(ErrorCode::usage, name,
                            "expected a model with at least the task's " + std::to_string(pieces) + " tokens",
                            "found a vocabulary of " + std::to_string(config.vocabulary) +
                                " (the task's options may make it smaller)");
        }
    }
}

std::vector<store::EvaluationResult> run_tasks(model::Model& model, const Request& request, const Documents* documents,
                                               std::int64_t model_index, Progress& progress) {
    check_request(request, model.config(), documents != nullptr);
    std::vector<store::EvaluationResult> rows;
    // Text tasks read the same scores: one pass a length serves all of them.
    std::vector<std::string> on_text, generated;
    for (const std::string& name : request.tasks) (find_task(name).on_text ? on_text : generated).push_back(name);
    struct Unit {
        std::string task;
        std::int64_t length;
    };
    std::vector<Unit> units;
    if (!on_text.empty())
        for (const auto length : lengths_of(request, find_task(on_text.front()), model.config()))
            units.push_back({on_text.front(), length});
    for (const std::string& name : generated)
        for (const auto length : lengths_of(request, find_task(name), model.config())) units.push_back({name, length});

    for (std::size_t u = 0; u < units.size(); ++u) {
        const auto& [task, length] = units[u];
        const std::string what = task + " at " + std::to_string(length);
        const auto tell = [&, u](double share) {
            progress.advance(static_cast<double>(u) + share, static_cast<double>(units.size()), what);
        };
        tell(0);
        if (find_task(task).on_text) {
            TextOptions options;
            options.length = length;
            options.stride = std::min(request.stride, length);
            options.prefix = request.prefix;
            options.most_tokens = request.most_tokens;
            options.score = request.score;
            const TextScore score = score_text(model, *documents, options, tell);
            if (score.tokens.targets() == 0)
                throw Error(ErrorCode::usage, documents->name(), "expected at least two tokens of text", "found fewer");
            check_finite(score.tokens, what);
            for (const std::string& name : on_text)
                add_text_rows(name, score, {model_index, name, length, score.tokens.targets(), rows});
        } else {
            const auto source =
                generator_of(request, find_task(task), length).source(data::Split::validation, request.seed);
            const TokenScores scores = score_source(
                model, *source, request.sequences, request.score,
                [&](std::int64_t done) { tell(static_cast<double>(done) / static_cast<double>(request.sequences)); });
            check_finite(scores, what);
            Rows out(model_index, task, length, scores.targets(), rows);
            out.add("accuracy", scores.accuracy(), scores.accuracy_error());
            out.add("loss", scores.loss(), scores.loss_error());
        }
        tell(1);
    }
    return rows;
}

}  // namespace headscope::evaluation
