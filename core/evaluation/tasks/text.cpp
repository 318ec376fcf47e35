// SPDX-License-Identifier: GPL-3.0-or-later
// Tasks on text: windows and positions.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/evaluation/position_score.h"
#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {
namespace {

constexpr const char* kNextTokenTask = "next_token_accuracy";
constexpr const char* kBucket = "bucket";
constexpr std::int64_t kPositionBuckets = 32;  ///< of a block, by default

/// Positions that are put together, of blocks of that length.
std::int64_t bucket_of(const Request& request, std::int64_t length) {
    const auto given = request.generator_options.find(kPositions);
    std::int64_t bucket = (length + kPositionBuckets - 1) / kPositionBuckets;
    if (given == request.generator_options.end()) return bucket;
    for (const auto& [name, value] : given->second) {
        if (name != kBucket)
            throw Error(ErrorCode::usage, "--task-option", std::string("expected ") + kPositions + "." + kBucket,
                        "found " + std::string(kPositions) + "." + escaped(name));
        check_number(Option(name, bucket, {}, 1, static_cast<double>(length)), value,
                     std::string(kPositions) + "." + kBucket);
        bucket = static_cast<std::int64_t>(value);
    }
    return bucket;
}

void add_text_rows(const std::string& task, const TextScore& score, Rows rows) {
    const TokenScores& tokens = score.tokens;
    if (task == kNextTokenTask) {
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

/// Windows as lm-eval-harness rolls them: one pass a length serves all their tasks.
class Windows final : public TaskKind {
public:
    std::string words(bool) const override { return "windows of text"; }
    bool on_text() const override { return true; }
    bool offered() const override { return true; }
    bool runs_apart() const override { return true; }
    bool shares_pass() const override { return true; }

    void run(TaskRun& run, const Unit& unit) const override {
        const NamedText& text = *unit.text;
        TextOptions options;
        options.length = unit.length;
        options.stride = std::min(run.request().stride, unit.length);
        options.prefix = run.request().prefix;
        options.most_tokens = run.request().most_tokens;
        options.score = run.request().score;
        const TextScore score =
            score_text(run.model(), *text.documents, options, [&run](double share) { run.report(share); });
        if (score.tokens.targets() == 0)
            throw Error(ErrorCode::usage, text.documents->name(), "expected at least two tokens of text",
                        "found fewer");
        run.check_finite(score.tokens.loss());
        for (const std::string& name : run.shared())
            add_text_rows(name, score, run.rows_of(name, unit.length, score.tokens.targets(), &text));
    }
};

class Positions final : public TaskKind {
public:
    std::string words(bool) const override { return "perplexity by position"; }
    bool on_text() const override { return true; }
    bool offered() const override { return true; }

    void run(TaskRun& run, const Unit& unit) const override {
        PositionOptions options;
        options.length = unit.length;
        options.bucket = bucket_of(run.request(), unit.length);
        options.most_tokens = run.request().most_tokens;
        options.score = run.request().score;
        const auto buckets =
            score_positions(run.model(), *unit.text->documents, options, [&run](double share) { run.report(share); });
        for (const PositionBucket& bucket : buckets) {
            run.check_finite(bucket.loss);
            const double perplexity = std::exp(bucket.loss);
            run.rows_of(unit.task->name, bucket.last, bucket.tokens, unit.text)
                .add("token_perplexity", perplexity, perplexity * bucket.error);
        }
    }

protected:
    void check_count(const Task& task, std::size_t lengths) const override {
        if (lengths > 1)
            throw Error(ErrorCode::usage, task.name, "expected one --length, that of its blocks",
                        "found " + std::to_string(lengths));
    }
    void check_at(const Request& request, const Task& task, const model::ModelConfig&,
                  std::int64_t length) const override {
        if (length < 2)
            throw Error(ErrorCode::usage, task.name, "expected blocks of at least 2 tokens",
                        "found " + std::to_string(length));
        bucket_of(request, length);
    }
};

}  // namespace

void add_text_tasks(std::vector<Task>& list) {
    static const Windows windows;
    static const Positions positions;
    list.push_back({"perplexity", "How well a text's tokens are predicted, in windows as lm-eval-harness rolls them",
                    &windows, "token_perplexity, loss, word_perplexity, byte_perplexity, bits_per_byte"});
    list.push_back({kNextTokenTask,
                    "Share of a text's tokens that have the largest logit, and that are among the five largest",
                    &windows, "accuracy, accuracy_of_five"});
    list.push_back({kPositions, "How well they are predicted at each distance from the begin of a block of --length",
                    &positions, "token_perplexity"});
}

}  // namespace headscope::evaluation
