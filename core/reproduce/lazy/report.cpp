// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "core/reproduce/lazy/claims.h"

namespace headscope::reproduce::lazy {
namespace {

class Report {
public:
    explicit Report(const ReportInput& input) : input_(input), plan_(input.plan), in_(input.measured) {}

    std::string text() {
        head();
        text_ += claims_markdown(judge(plan_, in_), too_few_tokens_markdown(learned(plan_)));
        perplexities();
        formulations();
        layers();
        masks();
        text_ += figures_markdown(input_.figures);
        foot();
        return text_;
    }

private:
    void line(const std::string& words = "") { text_ += words + "\n"; }
    void row(const std::vector<std::string>& cells) { text_ += row_markdown(cells); }
    void table_head(const std::vector<std::string>& cells) { text_ += table_head_markdown(cells); }
    static std::string percent(double share) { return number_text(100 * share); }
    const Attended* attended(const std::string& name) const {
        const auto found = in_.attended.find(name);
        return found == in_.attended.end() ? nullptr : &found->second;
    }
    static std::string numbers(const std::vector<double>& values, double factor = 1) {
        std::string text;
        for (const double value : values) text += (text.empty() ? "" : " ") + number_text(factor * value);
        return text;
    }

    void head() {
        line("# Lazy Attention, replayed small");
        line();
        line(
            "The paper (Fu, Song, Li, Wang, Wu, Deng, Yan, Zheng, Zhao: *Attention Needs to Focus: A Unified "
            "Perspective on Attention Allocation*) trains models of 340 and 760 million parameters on 15 and 30 "
            "billion tokens, and its ablations on 10 billion. Here its models were trained small, on one machine, in " +
            seconds_text(input_.seconds) +
            ". What follows is what was measured, also where it is not what the paper says.");
        line();
        table_head({"", "here", "paper"});
        row({"models", "presets " + plan_.size + "-lazy, " + plan_.size + "-transformer and what replaces their mixer",
             "340M and 760M"});
        row({"tokens of each run", millions_text(plan_.tokens()) + ", equal for all models",
             "15 000 M and 30 000 M; ablations 10 000 M"});
        row({"training length", std::to_string(plan_.sequence_length), "4096; ablations 512"});
        row({"text", input_.data, "FineWeb-Edu"});
        line();
    }

    void perplexities() {
        line("## Perplexity (Table 1, Fig. 6)");
        line();
        line("Of held-out text, in windows of 1, 2 and 4 times the training length, and the last over the first.");
        line();
        std::vector<std::string> cells{"model", "parameters"};
        for (const std::int64_t length : plan_.lengths()) cells.push_back(std::to_string(length));
        cells.insert(cells.end(), {"ratio", "paper: WikiText, 340M", "paper: WikiText, 760M"});
        table_head(cells);
        for (const Model& one : models()) {
            const std::string name(one.name);
            if (!in_.perplexity.contains(name)) continue;
            const auto parameters = in_.parameters.find(name);
            cells = {std::string(one.label),
                     parameters == in_.parameters.end() ? "–" : std::to_string(parameters->second)};
            for (const std::int64_t times : {1, 2, 4})
                cells.push_back(number_text(perplexity_at(plan_, in_, name, times)));
            cells.push_back(number_text(degradation(plan_, in_, name, 4)));
            cells.push_back(number_text(one.paper.wikitext_340m));
            cells.push_back(number_text(one.paper.wikitext_760m));
            row(cells);
        }
        line();
    }

    void formulations() {
        line("## Seven formulations (Table 2)");
        line();
        line(
            "Held-out loss at the training length; where the weight of a row goes, in per cent, means over queries, "
            "heads and layers. All are Lazy Attention with its biases and another normaliser or offset: the paper's "
            "sparsity of 59.58 % is 1 - density - sink of the row that begins at -1, so that row is Lazy Attention.");
        line();
        table_head({"weights", "loss", "paper", "density", "paper", "sink", "paper", "released", "paper", "zeros"});
        for (const std::string& name : table_two()) {
            const Model& one = model(name);
            const auto loss = in_.loss.find(name);
            const Attended unknown;
            const Attended& own = attended(name) == nullptr ? unknown : *attended(name);
            row({std::string(one.formula), number_text(loss == in_.loss.end() ? kNotPrinted : loss->second),
                 number_text(one.paper.loss), percent(own.density), number_text(one.paper.density), percent(own.sink),
                 number_text(one.paper.sink), percent(own.released),
                 number_text(100 - one.paper.density - one.paper.sink), percent(own.zeros)});
        }
        line();
    }

    void layers() {
        const Attended* own = attended("lazy");
        if (own == nullptr) return;
        line("## Lazy Attention by layer (Fig. 4, 5, 8, 10)");
        line();
        line(
            "Share of weights that are exactly 0, learned offsets of the heads, and of the learned bias, mean over "
            "heads, its correlation with distance and its drop from the nearest eighth of the distances to the farther "
            "half.");
        line();
        table_head({"layer", "zeros, %", "offsets", "bias: correlation", "bias: drop"});
        for (std::size_t layer = 0; layer < own->layer_zeros.size(); ++layer) {
            const Decay decay = layer < own->biases.size() ? decay_of(own->biases[layer]) : Decay{};
            row({std::to_string(layer), percent(own->layer_zeros[layer]),
                 layer < own->offsets.size() ? numbers(own->offsets[layer]) : "–", number_text(decay.correlation),
                 number_text(decay.drop)});
        }
        line();
    }

    void masks() {
        if (attended("mask-2") == nullptr && attended("mask-16") == nullptr) return;
        line("## Mask@k (Fig. 2)");
        line();
        line(
            "Transformer++ whose every sequence has one token at position k, counted from 0: a query's mean weight, in "
            "per cent, on the first token and on those two positions.");
        line();
        table_head({"model", "first", "2", "16"});
        for (const char* name : {"transformer", "mask-2", "mask-16"}) {
            const Attended* own = attended(name);
            if (own == nullptr || own->on_key.size() < 17) continue;
            row({std::string(model(name).label), percent(own->on_key[0]), percent(own->on_key[2]),
                 percent(own->on_key[16])});
        }
        line();
    }

    void foot() {
        line("## How it was done");
        line();
        text_ += effort_markdown(input_, plan_);
        const training::JobFile job = job_of(plan_, model("lazy"));
        line("- Every run: " + std::to_string(plan_.steps) + " steps of " + std::to_string(plan_.batch) +
             " sequences of " + std::to_string(plan_.sequence_length) + " tokens, AdamW, learning rate " +
             number_text(job.optimizer.learning_rate) + " to " + number_text(job.schedule.minimum_rate) +
             " on a cosine after 5 % warm-up, float32. The paper: 4e-4, betas and weight decay as here.");
        line(
            "- Lazy Attention's rotary base is 500 000, that of the others 10 000: the paper has a larger one than "
            "usual.");
        if (const Attended* own = attended("lazy"); own != nullptr && !own->biases.empty())
            line("- Biases reach " + std::to_string(own->biases.front().size()) + " distances; the paper: 512.");
        line(
            "- Not repeated here: the benchmarks of Table 1 and their mean in Table 2 (models of this size are at "
            "chance), StreamingLLM, Mamba2 and DeltaNet.");
        std::string absent;
        for (const Model& one : models())
            if (std::find(plan_.trials.begin(), plan_.trials.end(), one.name) == plan_.trials.end())
                absent += (absent.empty() ? "" : ", ") + std::string(one.label);
        if (!absent.empty()) line("- Not tried in so few minutes: " + absent + ".");
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

}  // namespace headscope::reproduce::lazy
