// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/reproduce/paper.h"
#include "core/training/job/number_text.h"

namespace headscope::reproduce {
namespace {

class Writer {
public:
    explicit Writer(const ReportInput& input) : in_(input), scores_(*input.scores) {}

    std::string run() {
        head();
        claims();
        perplexities();
        contexts();
        skipped();
        layouts();
        attention();
        costs();
        figures();
        method();
        return text_;
    }

private:
    void line(const std::string& text = "") { text_ += text + "\n"; }
    static std::string cell(const Spread& spread) { return spread_text(spread); }
    std::int64_t length() const { return in_.plan.sequence_length; }

    static std::string minutes_text(double minutes) {
        char text[40];
        std::snprintf(text, sizeof text, "%.4g", minutes);
        return text;
    }

    /// As the paper prints it.
    static std::string printed(double value) {
        char text[40];
        std::snprintf(text, sizeof text, value >= 2e4 ? "%.0E" : "%.1f", value);
        return text;
    }

    static std::string millions(std::int64_t count) { return number_text(static_cast<double>(count) / 1e6) + " M"; }

    void head() {
        const Plan& plan = in_.plan;
        line("# Deconstructing Attention, replayed small");
        line();
        line(
            "The paper (Xue, Moosavi, Aletras: *Deconstructing Attention: Investigating Design Principles for "
            "Effective "
            "Language Modeling*) trains 500M-parameter models on 15 billion tokens. Here its seven token mixers were "
            "trained small, on one machine, in " +
            seconds_text(in_.seconds) +
            ". What follows is what was measured, also where it is not what the paper says.");
        line();
        line("| | here | paper |");
        line("| --- | --- | --- |");
        line("| model | " + std::to_string(plan.size.layers) + " layers, " + std::to_string(plan.size.hidden) +
             " wide, " + std::to_string(plan.size.heads) + " heads, " +
             millions(scores_.parameters({"standard", "standard"})) +
             " parameters | 24 layers, 896 wide, 14 heads, 500 M |");
        line("| tokens of each run | " + millions(plan.tokens()) + ", equal for all | 15 000 M |");
        line("| training length | " + std::to_string(plan.sequence_length) + " | 2048 |");
        line("| text | " + in_.data + " | SlimPajama; evaluated on WikiText and LAMBADA |");
        line("| seeds | " + seeds_text() + " | 1 |");
        line();
    }

    std::string seeds_text() const {
        if (in_.plan.seeds == 1) return "1: the minutes were few, so there are no error bars";
        // What was trained, not what was planned.
        std::int64_t fewest = in_.plan.seeds, most = 0;
        for (const Trial& trial : in_.plan.trials) {
            if (trial.ablation) continue;
            const std::int64_t count = scores_.perplexity({trial.mixer, trial.configuration()}, length()).count;
            fewest = std::min(fewest, count);
            most = std::max(most, count);
        }
        if (fewest == most) return std::to_string(most) + "; ± is the standard deviation over seeds";
        return std::to_string(fewest) + " to " + std::to_string(most) + " of " + std::to_string(in_.plan.seeds) +
               " planned (what was left out is named at the end); ± is the standard deviation over seeds";
    }

    void claims() {
        text_ += claims_markdown(
            judge(in_.plan, scores_, in_.analyses),
            learned(in_.plan, scores_)
                ? ""
                : "**Standard itself did not get 3 % below MLP, which sees one token: in so few tokens no model "
                  "learned "
                  "to use its context, so mixers cannot be told apart. More minutes are needed for verdicts.**");
    }

    void row(const std::string& mixer, const std::string& configuration) {
        const Which which{mixer, configuration};
        const PaperModel* paper = paper_model(mixer, configuration);
        if (!scores_.has(which) && paper == nullptr) return;
        const Spread accuracy = scores_.accuracy(which, length());
        Spread shares = accuracy;
        shares.mean *= 100;
        shares.deviation *= 100;
        line("| " + (configuration == "standard" ? "" : configuration) + " | " + label_of(mixer) + " | " +
             cell(scores_.perplexity(which, length())) + " | " +
             cell(scores_.value(which, "perplexity", "bits_per_byte", length())) + " | " + cell(shares) + " | " +
             (paper ? printed(paper->wikitext) : "") + " | " + (paper ? printed(paper->lambada) : "") + " | " +
             (paper ? printed(paper->accuracy) : "") + " |");
    }

    void perplexities() {
        line("## Perplexity and accuracy (Table 1)");
        line();
        line(
            "Ours on the held-out part of the text, at the training length; the paper's WikiText perplexity, LAMBADA "
            "accuracy and mean accuracy of seven tasks (random guess 39.9) for comparison of the order, not of the "
            "numbers.");
        line();
        line("| layers | mixer | perplexity | bits a byte | next token, % | paper: WikiText | LAMBADA, % | tasks, % |");
        line("| --- | --- | --- | --- | --- | --- | --- | --- |");
        row("standard", "standard");
        for (const char* configuration : {"uniform", "hybrid"})
            for (const PaperMixer& mixer : paper_mixers())
                if (mixer.name != "standard") row(std::string(mixer.name), configuration);
        line();
    }

    void contexts() {
        const std::vector<std::int64_t> lengths = in_.plan.lengths();
        line("## Perplexity by context length (Table 4)");
        line();
        line(
            "The same held-out tokens in windows of so many tokens, 1/16 to 1 of the training length as in the paper. "
            "(Of uniform Non-approximate it prints 9E+4 in Table 1 and 9025.9 in Table 4; both are given as printed.)");
        line();
        std::string header = "| layers | mixer |", rule = "| --- | --- |";
        for (const auto one : lengths) {
            header += " " + std::to_string(one) + " |";
            rule += " --- |";
        }
        for (const int one : kPaperLengths) {
            header += " paper: " + std::to_string(one) + " |";
            rule += " --- |";
        }
        line(header);
        line(rule);
        const auto add = [&](const std::string& mixer, const std::string& configuration) {
            const Which which{mixer, configuration};
            if (!scores_.has(which)) return;
            std::string text =
                "| " + (configuration == "standard" ? "" : configuration) + " | " + label_of(mixer) + " |";
            for (const auto one : lengths) text += " " + cell(scores_.perplexity(which, one)) + " |";
            const PaperModel* paper = paper_model(mixer, configuration);
            for (std::size_t i = 0; i < kPaperLengths.size(); ++i)
                text += " " + (paper && paper->context[i] > 0 ? printed(paper->context[i]) : "") + " |";
            line(text);
        };
        add("standard", "standard");
        for (const char* configuration : {"uniform", "hybrid"})
            for (const PaperMixer& mixer : paper_mixers())
                if (mixer.name != "standard") add(std::string(mixer.name), configuration);
        line();
    }

    void skipped() {
        line("## Hybrids without their simple blocks (Table 1, skip)");
        line();
        line("Perplexity of the trained hybrids when the layers that are not Standard are left out, mixer and all.");
        line();
        line("| mixer | hybrid | without | paper: hybrid | without |");
        line("| --- | --- | --- | --- | --- |");
        for (const PaperMixer& one : paper_mixers()) {
            const std::string mixer(one.name);
            if (!scores_.has({mixer, "skip"})) continue;
            line("| " + label_of(mixer) + " | " + cell(scores_.perplexity({mixer, "hybrid"}, length())) + " | " +
                 cell(scores_.perplexity({mixer, "skip"}, length())) + " | " +
                 printed(paper_model(mixer, "hybrid")->wikitext) + " | " +
                 printed(paper_model(mixer, "skip")->wikitext) + " |");
        }
        line();
    }

    void layouts() {
        line("## Layouts (Fig. 3, Table 11)");
        line();
        bool others = false;
        for (const Trial& trial : in_.plan.trials)
            others |= trial.ablation && scores_.has({trial.mixer, trial.configuration()});
        if (!others) {
            line("Only the layouts above were trained: there was no time left for others.");
            line();
            return;
        }
        line(
            "Which layers are Standard; one seed but for even and uniform. Perplexity at the training length. Stacks "
            "that are equal at this depth are told once" +
            std::string(in_.plan.with_ablation ? "" : ", and what there was no time for is absent") +
            ". The paper finds all near 40 but for extreme ones: Non-approximate with Standard in the last layer alone "
            "exceeds 400.");
        line();
        line("| layout | Non-approximate | RndEmbQK |");
        line("| --- | --- | --- |");
        for (const char* layout :
             {"hybrid", "odd", "top", "middle", "bottom", "quarter", "first", "last", "bilateral", "uniform"}) {
            const Spread one = scores_.perplexity({"non_approximate", layout}, length()),
                         two = scores_.perplexity({"rnd_emb_qk", layout}, length());
            if (one.count + two.count == 0) continue;
            line(std::string("| ") + (std::string(layout) == "hybrid" ? "even" : layout) + " | " + cell(one) + " | " +
                 cell(two) + " |");
        }
        line("| Standard everywhere | " + cell(scores_.perplexity({"standard", "standard"}, length())) + " | |");
        line();
    }

    void attention() {
        if (in_.analyses.empty()) return;
        line("## What the heads do (Fig. 1, 2, 6, 7, 8)");
        line();
        line(
            "On one held-out passage. Distance: mean difference of the radar plots' spokes, of all layers that have a "
            "matrix, to those of Standard (Standard's own: to its other seeds). Outliers: the largest |score| before "
            "softmax of any layer with that mixer, and the share of its pairs beyond 10.");
        line();
        line("| layers | mixer | models | distance to Standard | largest score | beyond 10 |");
        line("| --- | --- | --- | --- | --- | --- |");
        const Which base{"standard", "standard"};
        std::vector<Which> rows;
        for (const Indicators& one : in_.analyses)
            if (std::find(rows.begin(), rows.end(), one.which) == rows.end()) rows.push_back(one.which);
        std::stable_partition(rows.begin(), rows.end(), [&](const Which& row) { return row == base; });
        for (const Which& row : rows) {
            const auto models = std::count_if(in_.analyses.begin(), in_.analyses.end(),
                                              [&](const Indicators& one) { return one.which == row; });
            const OutlierSpread found = outliers_over_seeds(row, in_.analyses);
            line("| " + (row == base ? "" : row.second) + " | " + label_of(row.first) + " | " + std::to_string(models) +
                 " | " + spread_text(distances_over_seeds(row, base, in_.analyses)) + " | " +
                 spread_text(found.largest) + " | " +
                 (found.above_ten.count > 0 ? number_text(100 * found.above_ten.mean) + " %" : "–") + " |");
        }
        line();
    }

    void costs() {
        if (in_.cost_csv.empty()) return;
        std::istringstream lines(in_.cost_csv);
        const auto cells_of = [](const std::string& text) {
            std::vector<std::string> cells;
            std::istringstream row(text);
            for (std::string one; std::getline(row, one, ',');) cells.push_back(one);
            return cells;
        };
        std::string text;
        std::getline(lines, text);
        const std::vector<std::string> header = cells_of(text);
        line("## Cost (Tables 5 to 8)");
        line();
        line(
            "One layer's mixer without its output projection, at the width above and 4 bytes a number: the paper's "
            "formula beside what was counted from the operators that ran, and held. Ours skips the pairs that a causal "
            "mask hides, and never keeps an L x L matrix. RndEmbQK and FixedSeqQK: queries and keys come with their "
            "guide streams, which are beside, once a length. Approximate: the paper's formulas are of a diagonal "
            "second "
            "order; here it is the whole one, whose weights stay positive, and whose state is larger. Non-approximate "
            "keeps its queries for the "
            "backward pass.");
        line();
        line(
            "| mixer | tokens | FLOPs of reading | counted | FLOPs of one more token | counted | bytes kept for "
            "training | "
            "kept | cache bytes | held | guide FLOPs |");
        line("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        while (std::getline(lines, text)) {
            const std::vector<std::string> cells = cells_of(text);
            const auto cell_of = [&](const std::string& name) -> std::string {
                const auto at =
                    static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
                if (at >= cells.size() || cells[at].empty()) return "";
                return name == "length" ? cells[at] : counted(std::strtod(cells[at].c_str(), nullptr));
            };
            line("| " + label_of(cells.front()) + " | " + cell_of("length") + " | " + cell_of("prefill_flops") + " | " +
                 cell_of("measured_prefill_flops") + " | " + cell_of("decode_flops") + " | " +
                 cell_of("measured_decode_flops") + " | " + cell_of("activation_bytes") + " | " +
                 cell_of("measured_activation_bytes") + " | " + cell_of("cache_bytes") + " | " +
                 cell_of("measured_cache_bytes") + " | " + cell_of("measured_guide_flops") + " |");
        }
        line();
    }

    /// 12.3 k, 4.56 M.
    static std::string counted(double value) {
        const char* const units[] = {"", " k", " M", " G", " T"};
        int unit = 0;
        for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
        char text[40];
        std::snprintf(text, sizeof text, "%.3g%s", value, units[unit]);
        return text;
    }

    void figures() { text_ += figures_markdown(in_.figures); }

    std::string side_by_side_text() const {
        const Plan& plan = in_.plan;
        std::string text = std::to_string(plan.workers) + (plan.workers == 1 ? " run" : " runs") + " at a time, on " +
                           std::to_string(plan.threads) + (plan.threads == 1 ? " thread" : " threads") + " each";
        if (!in_.launch.empty()) text += ", every training started by " + escaped(in_.launch, 200);
        if (plan.workers < plan.workers_wanted)
            text += ", not " + std::to_string(plan.workers_wanted) + " as there are processors for: one held up to " +
                    size_text(static_cast<std::uint64_t>(plan.run_bytes)) + " of memory, and " +
                    size_text(static_cast<std::uint64_t>(plan.room_bytes)) + " were free";
        return text + ".";
    }

    void method() {
        const Plan& plan = in_.plan;
        line("## How it was done");
        line();
        line("- " + in_.program_version + " on " + in_.machine + ". " + minutes_text(plan.minutes) +
             (plan.minutes == 1 ? " minute was given, " : " minutes were given, ") + seconds_text(in_.seconds) +
             " taken; Standard trained at " + number_text(in_.tokens_per_second) + " tokens a second. " +
             side_by_side_text());
        const training::JobFile job = job_of(plan, plan.trials.empty() ? Trial{} : plan.trials.front());
        line("- Every run: " + std::to_string(plan.steps) + " steps of " + std::to_string(plan.batch) +
             " sequences of " + std::to_string(plan.sequence_length) + " tokens, AdamW (" +
             training::number_text(job.optimizer.betas[0]) + ", " + training::number_text(job.optimizer.betas[1]) +
             ", weight decay " + training::number_text(job.optimizer.weight_decay) + ", clip " +
             training::number_text(job.training.clip) + "), learning rate " +
             training::number_text(job.optimizer.learning_rate) + " to " +
             training::number_text(job.schedule.minimum_rate) +
             " on a cosine after 5 % warm-up, float32. The paper: 4e-4, betas 0.9 and 0.9999.");
        line("- Perplexity: windows as lm-eval-harness rolls them, over the first " +
             std::to_string(plan.evaluation_tokens) +
             " held-out tokens at every length; the tokenizer is a BPE of 1024 tokens trained on the same text.");
        line(
            "- Not repeated here: the seven NLU tasks and LAMBADA (models of this size are at chance), other sizes "
            "(Fig. 4), grouped heads (Table 3).");
        for (const std::string& one : in_.missing) line("- " + one);
        line();
        if (in_.commands.empty()) return;
        line("Any of it again, by hand:");
        line();
        for (const std::string& command : in_.commands) line("    " + command);
    }

    const ReportInput& in_;
    const Scores& scores_;
    std::string text_;
};

}  // namespace

std::string report_markdown(const ReportInput& input) {
    return Writer(input).run();
}

}  // namespace headscope::reproduce
