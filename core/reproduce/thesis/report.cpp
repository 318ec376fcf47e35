// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "core/reproduce/thesis/claims.h"
#include "core/reproduce/thesis/printed.h"

namespace headscope::reproduce::thesis {
namespace {

class Report {
public:
    explicit Report(const ReportInput& input) : input_(input), plan_(input.plan), in_(input.measured) {}

    std::string text() {
        head();
        text_ += claims_markdown(judge(plan_, in_), too_few_tokens_markdown(learned(plan_)));
        if (heads()) {
            attentions("Encoders", {Score::passages, Score::spoilt}, printed_encoders());
            attentions("Decoders", {Score::perplexity}, printed_decoders());
            attentions("Encoder-decoders", {Score::bleu}, printed_translations());
        } else {
            embeddings();
            speeds();
        }
        text_ += figures_markdown(input_.figures);
        foot();
        return text_;
    }

private:
    bool heads() const { return plan_.chapter == Chapter::heads; }
    void line(const std::string& words = "") { text_ += words + "\n"; }
    void row(const std::vector<std::string>& cells) { text_ += row_markdown(cells); }
    void table_head(const std::vector<std::string>& cells) { text_ += table_head_markdown(cells); }
    static std::string percent(double value) { return number_text(100 * value); }
    static std::string count_text(double count) {
        return std::isfinite(count) ? std::to_string(static_cast<std::int64_t>(count)) : "–";
    }
    /// Of millions.
    static std::string printed_count(double millions) {
        if (!std::isfinite(millions)) return "–";
        return millions < 1 ? number_text(1000 * millions) + " K" : number_text(millions) + " M";
    }
    /// "71.2 ± 0.4": per cent of shares, with the standard error.
    std::string cell(std::string_view name, Score score) const {
        const Estimate own = score_of(in_, name, score);
        if (!std::isfinite(own.value)) return "–";
        const double unit = score == Score::passages || score == Score::spoilt ? 100 : 1;
        return number_text(unit * own.value) + (own.error > 0 ? " ± " + number_text(unit * own.error) : "");
    }

    void head() {
        line(heads() ? "# Multiple-head embedding attention, replayed small" : "# HashFormers, replayed small");
        line();
        line("Chapter " + std::string(heads() ? "3" : "2") +
             " of Xue's thesis trains models of BERT-base's size on Wikipedia and books" +
             (heads() ? ", GPT-2's on text and Vaswani's on WMT-14" : "") +
             ". Here they were trained small, on one machine, in " + seconds_text(input_.seconds) +
             ". What follows is what was measured, also where it is not what the thesis says.");
        line();
        table_head({"", "here", "thesis"});
        row({"models",
             heads() ? "presets " + plan_.size + "-mhe-encoder, -decoder and -translation with each attention"
                     : "presets " + plan_.size + "-hashformer-*, -proformer and -canine-like",
             heads() ? "BERT-base, GPT-2-base, transformer-base" : "BERT-base"});
        row({"tokens of each encoder", millions_text(plan_.tokens(Stage::pretrain)) + ", equal for all models",
             heads() ? "1 M steps of 128 sequences" : "500 000 steps of 128 sequences"});
        row({"training length", std::to_string(plan_.sequence_length), "512"});
        row({"text", input_.data, "Wikipedia and BookCorpus"});
        row({"tuned for", "which of " + std::to_string(kClasses) + " parts of the text 24 words are from",
             heads() ? "GLUE, SuperGLUE, SQuAD" : "GLUE"});
        row({"seeds", std::to_string(plan_.seeds), heads() ? "5" : "3"});
        line();
    }

    void attentions(const char* title, const std::vector<Score>& scores, const PrintedTable& printed) {
        const Stack stack = stack_of(scores.front());
        line("## " + std::string(title) + " (Table " + std::string(printed.number) + ")");
        line();
        line(
            "Parameters are those of all attention sublayers, without biases; PRR, per cent, is against MHA, PEoP "
            "against SHA; errors are standard errors. Of the thesis: score, PRR and PEoP of each benchmark.");
        line();
        std::vector<std::string> cells{"attention", "parameters"};
        for (const Score score : scores)
            cells.insert(cells.end(), {score_name(score) + (lower_is_better(score) ? ""
                                                            : score == Score::bleu ? ""
                                                                                   : ", %"),
                                       "PRR", "PEoP"});
        cells.emplace_back("thesis: parameters");
        for (const std::string_view benchmark : printed.benchmarks) cells.emplace_back(benchmark);
        table_head(cells);
        for (const Model& one : models(plan_.chapter)) {
            const bool measured = std::any_of(scores.begin(), scores.end(), [&](Score score) {
                return std::isfinite(score_of(in_, one.name, score).value);
            });
            if (!measured) continue;
            const auto counted = in_.attention.find({std::string(one.name), stack});
            cells = {std::string(one.label),
                     counted == in_.attention.end() || counted->second < 0 ? "–" : std::to_string(counted->second)};
            for (const Score score : scores)
                cells.insert(cells.end(), {cell(one.name, score), percent(retention(in_, one.name, "standard", score)),
                                           number_text(elasticity(in_, one.name, score).value)});
            const PrintedAttention row_of = printed_attention(printed, one.name);
            cells.push_back(printed_count(row_of.parameters));
            for (const PrintedScore& score : row_of.scores)
                cells.push_back(number_text(score.score) + " / " + number_text(score.retention) + " / " +
                                number_text(score.elasticity));
            row(cells);
        }
        line();
    }

    void embeddings() {
        line("## Memory and performance (Tables 2.1 and 2.2)");
        line();
        line(
            "Passages told apart, per cent, and how well pre-training went: masked or spoilt tokens told right (two "
            "tasks that do not compare). PRR and compression (PCR), per cent, are against BERT-MLM; PoEP is the share "
            "of the embeddings. Thesis: mean of GLUE.");
        line();
        table_head({"model", "passages", "PRR", "pre-training", "parameters", "of embeddings", "PCR all", "PCR emb",
                    "PoEP", "thesis: GLUE", "PRR", "parameters", "of embeddings", "PCR all", "PCR emb", "PoEP"});
        const std::string_view baseline = kBaseline[static_cast<std::size_t>(plan_.chapter)];
        const double all_of_baseline = count_of(in_.parameters, baseline),
                     embedding_of_baseline = count_of(in_.embedding, baseline);
        for (const Model& one : models(plan_.chapter)) {
            if (!std::isfinite(score_of(in_, one.name, Score::passages).value)) continue;
            const double all = count_of(in_.parameters, one.name), embedding = count_of(in_.embedding, one.name);
            const PrintedEmbedding printed = printed_embedding(one.name);
            row({std::string(one.label), cell(one.name, Score::passages),
                 percent(retention(in_, one.name, baseline, Score::passages)), cell(one.name, Score::spoilt),
                 count_text(all), count_text(embedding), percent(1 - all / all_of_baseline),
                 percent(1 - embedding / embedding_of_baseline), percent(embedding / all), number_text(printed.score),
                 number_text(printed.retention), printed_count(printed.parameters), printed_count(printed.embedding),
                 number_text(printed.compression), number_text(printed.embedding_compression),
                 number_text(printed.proportion)});
        }
        line();
    }

    void speeds() {
        if (in_.training_ms.empty() && in_.forward_ms.empty()) return;
        line("## Speed (Table 2.3)");
        line();
        line("Milliseconds a sample: a training step of 512 tokens with " + std::to_string(kLargeVocabulary) +
             " rows where a model has a table, and one forward pass of a tuned model; in brackets, how many times as "
             "fast as BERT-MLM.");
        line();
        table_head({"model", "training", "forward", "thesis: training", "forward"});
        const auto timed = [](const std::map<std::string, double>& times, std::string_view name) {
            const auto own = times.find(std::string(name)), base = times.find("bert-mlm");
            if (own == times.end()) return std::string("–");
            return number_text(own->second) +
                   (base == times.end() ? "" : " (" + number_text(base->second / own->second) + ")");
        };
        const auto printed = [](std::string_view time, std::string_view rate) {
            return time.empty() ? std::string("–") : std::string(time) + " (" + std::string(rate) + ")";
        };
        for (const Model& one : models(plan_.chapter)) {
            const std::string training = timed(in_.training_ms, one.name), forward = timed(in_.forward_ms, one.name);
            if (training == "–" && forward == "–") continue;
            const PrintedSpeed thesis = printed_speed(one.name);
            row({std::string(one.label), training, forward, printed(thesis.training, thesis.training_rate),
                 printed(thesis.inference, thesis.inference_rate)});
        }
        line();
    }

    void foot() {
        line("## How it was done");
        line();
        text_ += effort_markdown(input_, plan_);
        std::string steps;
        std::vector<Stage> stages{Stage::pretrain, Stage::classify};
        if (heads()) stages.insert(stages.end(), {Stage::decoder, Stage::translation});
        for (const Stage stage : stages)
            steps += (steps.empty() ? "" : ", ") + stage_name(stage) + " " + std::to_string(plan_.steps(stage));
        line("- Steps: " + steps + ", of " + std::to_string(plan_.batch) + " sequences of " +
             std::to_string(plan_.sequence_length) +
             " tokens (decoders: half as many, twice as long), AdamW on a cosine after 5 % warm-up, float32. The "
             "thesis: 1e-4 for MLM, 5e-5 for S+R and 3e-5 for tuning.");
        if (heads())
            line(
                "- Not repeated here: GLUE, SuperGLUE, SQuAD and WMT-14 themselves; translations are of a made-up "
                "language.");
        else
            line(
                "- Not repeated here: GLUE itself. CANINE-like reads characters in sequences four times as long, "
                "without CANINE's local attention and downsampling; ProFormer is trained on the passages alone.");
        for (const std::string& one : input_.missing) line("- " + one);
        line();
        text_ += commands_markdown(input_);
    }

    const ReportInput& input_;
    const Plan& plan_;
    const Measured& in_;
    std::string text_;
};

}  // namespace

std::string report_markdown(const ReportInput& input) {
    return Report(input).text();
}

}  // namespace headscope::reproduce::thesis
