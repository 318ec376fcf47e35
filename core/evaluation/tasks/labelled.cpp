// SPDX-License-Identifier: GPL-3.0-or-later
// Tasks of encoders and encoder-decoders.
#include "core/base/error.h"
#include "core/evaluation/tasks/run.h"

namespace headscope::evaluation {
namespace {

void check_labelled(const Request& request, const Task& task, const model::ModelConfig& config) {
    check_head(task.name, config);
    if (!request.labelled.tokenizer.tokenizer)
        throw Error(ErrorCode::usage, task.name, "expected a checkpoint with a tokenizer", "found none");
}

/// Masked, or shuffled and replaced tokens of texts.
class Corrupted final : public TaskKind {
public:
    std::string words(bool) const override { return "masked, shuffle_random"; }
    bool on_text() const override { return true; }

    void run(TaskRun& run, const Unit& unit) const override {
        const TokenScores scores =
            score_corrupted(run.model(), unit.task->name, *unit.text->documents, run.request().labelled, unit.length,
                            run.request().seed, run.request().most_tokens, run.request().score,
                            [&run](double share) { run.report(share); });
        if (scores.targets() > 0) run.check_finite(scores.loss());
        Rows out = run.rows_of(unit.task->name, unit.length, scores.targets(), unit.text);
        out.add("loss", scores.loss(), scores.loss_error());
        out.add("accuracy", scores.accuracy(), scores.accuracy_error());
    }

protected:
    void check_inputs(const Request& request, const Task& task, const model::ModelConfig& config) const override {
        check_labelled(request, task, config);
    }
};

/// Tasks on items of files, or of the generator that the model was trained on.
class OnItems : public TaskKind {
public:
    std::string words(bool given) const override { return name_ + (given ? " of --data" : " of generated items"); }
    std::vector<LabelledItems>* items(LabelledWork& work) const override { return &(work.*items_); }

    void run(TaskRun& run, const Unit& unit) const override {
        const std::vector<LabelledItems>& all = run.request().labelled.*items_;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const auto values = score_(
                run.model(), run.request().labelled, all[i], unit.length, run.request().score, run.request().on_answer,
                [&](double share) { run.report((static_cast<double>(i) + share) / static_cast<double>(all.size())); });
            for (const NamedValue& one : values)
                run.rows_of(all[i].name, unit.length, one.count)
                    .of_text(all[i].text, all[i].sha256)
                    .of_cut(one.cut)
                    .add(one.metric, one.value, one.error);
        }
    }

protected:
    using Score = decltype(classify)*;
    OnItems(std::string name, std::vector<LabelledItems> LabelledWork::*items, Score score)
        : name_(std::move(name)), items_(items), score_(score) {}

    void check_inputs(const Request& request, const Task& task, const model::ModelConfig& config) const override {
        check_labelled(request, task, config);
        check_options(request);
        if ((request.labelled.*items_).empty())
            throw Error(ErrorCode::usage, task.name, "expected files of JSON lines (--data NAME=FILE)", "found none");
    }
    virtual void check_options(const Request&) const {}

private:
    std::string name_;
    std::vector<LabelledItems> LabelledWork::*items_;
    Score score_;
};

class Classes final : public OnItems {
public:
    Classes() : OnItems("classify", &LabelledWork::classes, classify) {}
};

class Translations final : public OnItems {
public:
    Translations() : OnItems("translation", &LabelledWork::translations, translate) {}

protected:
    void check_options(const Request& request) const override {
        if (!request.score.skip_layers.empty())
            throw Error(ErrorCode::usage, "--skip", "expected none beside translation", "found some");
    }
};

}  // namespace

void add_labelled_tasks(std::vector<Task>& list) {
    static const Corrupted corrupted;
    static const Classes classes;
    static const Translations translations;
    list.push_back({"masked", "How well an encoder predicts the masked tokens of a text (BERT's 15 %)", &corrupted,
                    "loss, accuracy"});
    list.push_back({"shuffle_random", "How well an encoder recognizes tokens that changed places or were replaced",
                    &corrupted, "loss, accuracy"});
    list.push_back({"classify", "Classes, or a number, of texts and pairs in JSON lines: --data NAME=FILE.jsonl",
                    &classes, "accuracy, f1, matthews, spearman, loss"});
    list.push_back({"translation", "What an encoder-decoder makes of source texts in JSON lines, and BLEU of it",
                    &translations, "bleu, loss"});
}

}  // namespace headscope::evaluation
