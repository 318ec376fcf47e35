// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/natsl/claims.h"

#include <algorithm>
#include <cmath>

#include "core/store/analysis_file.h"

namespace headscope::reproduce::natsl {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
/// What guessing among 16 values scores, and how far above it a model has learned to recall.
constexpr double kLearned = 0.5;

std::string label_of(const std::string& name) {
    return std::string(model(name).label);
}

class Judge {
public:
    Judge(const Plan& plan, const Measured& measured) : plan_(plan), in_(measured) {}

    std::vector<Claim> all() const {
        return {best_at_recall(),    keeps_perplexity(),  lowest_perplexity(), no_pure_softmax(), pure_linear(),
                types_follow_text(), types_are_learned(), latency_between(),   equal_parameters()};
    }

private:
    static std::string recall_of(std::string_view name) { return std::string(name) + "-recall"; }

    Claim best_at_recall() const {
        Claim claim{"NAtS-L Hybrid is the best at retrieval, within its training length and beyond",
                    "mean of RULER's retrieval tasks at 4096, 8192 and 16 384 tokens: NAtS-L Hybrid 0.49, 0.32, 0.21; "
                    "GDN Hybrid 0.47, 0.02, 0.00; Transformer 0.45, 0.00, 0.00; GDN 0.25, 0.14, 0.04",
                    "its mean accuracy on the recall task over 1, 2 and 4 times the training length is no more than 2 "
                    "points below any other's",
                    "", Verdict::not_measured};
        const double own = mean_recall(in_, recall_of("natsl-hybrid"));
        double most = 0;
        ClaimParts parts;
        for (const Model& one : models()) {
            const double other = mean_recall(in_, recall_of(one.name));
            if (!std::isfinite(other)) continue;
            most = std::max(most, other);
            append_found(claim.found, std::string(one.label) + " " + share_text(other));
            if (one.name != "natsl-hybrid" && std::isfinite(own)) parts.add(own >= other - 0.02);
        }
        claim.verdict = parts.verdict();
        if (claim.verdict != Verdict::not_measured && most < kLearned) claim.verdict = Verdict::undecided;
        return claim;
    }

    Claim keeps_perplexity() const {
        Claim claim{
            "NAtS-L and its hybrid keep their perplexity past the training length, the softmax models do not",
            "Fig. 3: up to 16 times the training length both NAtS-L stay level; GDN Hybrid and Transformer fail",
            "perplexity at 8 times the training length: of both NAtS-L at most 5 % above that within it, of GDN "
            "Hybrid and Transformer more than 5 %",
            "", Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"natsl-hybrid", "natsl", "gdn", "mamba2", "gdn-hybrid", "transformer"}) {
            const double inside = perplexity_inside(plan_, in_, name), beyond = perplexity_beyond(plan_, in_, name);
            if (!std::isfinite(inside) || !std::isfinite(beyond)) continue;
            append_found(claim.found, label_of(name) + " " + number_text(inside) + " and " + number_text(beyond));
            const std::string kind = name;
            if (kind.starts_with("natsl")) parts.add(beyond <= 1.05 * inside);
            if (kind == "gdn-hybrid" || kind == "transformer") parts.add(beyond > 1.05 * inside);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim lowest_perplexity() const {
        Claim claim{"NAtS-L Hybrid has the lowest perplexity",
                    "WikiText: 18.52; GDN Hybrid 18.83, NAtS-L 19.17, Transformer 19.27, Mamba2 19.28, GDN 19.54",
                    "its perplexity within the training length is no more than 0.5 % above any other's", "",
                    Verdict::not_measured};
        const double own = perplexity_inside(plan_, in_, "natsl-hybrid");
        ClaimParts parts;
        for (const Model& one : models()) {
            const double other = perplexity_inside(plan_, in_, std::string(one.name));
            if (!std::isfinite(other)) continue;
            append_found(claim.found, std::string(one.label) + " " + number_text(other));
            if (one.name != "natsl-hybrid" && std::isfinite(own)) parts.add(own <= 1.005 * other);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    /// Of every head on every text of a model, sorted.
    std::vector<double> fractions(const std::string& name) const {
        std::vector<double> all;
        for (const TokenTypes& types : in_.types) {
            if (types.model != name) continue;
            for (const auto& layer : types.fractions) all.insert(all.end(), layer.begin(), layer.end());
        }
        std::sort(all.begin(), all.end());
        return all;
    }

    Claim no_pure_softmax() const {
        Claim claim{"No head gives all tokens to softmax attention", "Fig. 5: none does; one comes close",
                    "on none of three texts a head of either model gives every chunk to softmax", "",
                    Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"natsl-hybrid", "natsl"}) {
            const auto all = fractions(name);
            if (all.empty()) continue;
            append_found(claim.found, label_of(name) + ": at most " + share_text(all.back()));
            parts.add(all.back() < 1);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim pure_linear() const {
        Claim claim{"Several heads give all tokens to linear attention", "Fig. 5: several of each model",
                    "at least two heads of each model give no chunk of any of three texts to softmax", "",
                    Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"natsl-hybrid", "natsl"}) {
            std::map<std::pair<std::size_t, std::size_t>, double> largest;
            for (const TokenTypes& types : in_.types) {
                if (types.model != name) continue;
                for (std::size_t layer = 0; layer < types.fractions.size(); ++layer) {
                    for (std::size_t head = 0; head < types.fractions[layer].size(); ++head) {
                        double& most = largest[{layer, head}];
                        most = std::max(most, types.fractions[layer][head]);
                    }
                }
            }
            if (largest.empty()) continue;
            const auto pure =
                std::count_if(largest.begin(), largest.end(), [](const auto& head) { return head.second == 0; });
            append_found(claim.found, label_of(name) + ": " + std::to_string(pure) + " of " +
                                          std::to_string(largest.size()) + " heads");
            parts.add(pure >= 2);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    /// Mean |difference| of the softmax fractions of two texts; NaN where either is not there.
    double apart(const std::string& name, const std::string& one, const std::string& other) const {
        const TokenTypes *a = nullptr, *b = nullptr;
        for (const TokenTypes& types : in_.types) {
            if (types.model == name && types.text == one) a = &types;
            if (types.model == name && types.text == other) b = &types;
        }
        if (a == nullptr || b == nullptr) return kNone;
        double sum = 0, count = 0;
        for (std::size_t layer = 0; layer < std::min(a->fractions.size(), b->fractions.size()); ++layer) {
            for (std::size_t head = 0; head < a->fractions[layer].size(); ++head) {
                sum += std::abs(a->fractions[layer][head] - b->fractions.at(layer).at(head));
                ++count;
            }
        }
        return count > 0 ? sum / count : kNone;
    }

    Claim types_follow_text() const {
        Claim claim{
            "Which tokens go to softmax depends on the kind of text: source code is unlike prose and verse",
            "Fig. 5: PG19 and NarrativeQA are closer to each other than to CodeParrot",
            "the softmax fractions of heads differ more between code and either of prose and verse than between "
            "these two, in the mean over heads",
            "", Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"natsl-hybrid", "natsl"}) {
            const double near = apart(name, "prose", "verse"), prose = apart(name, "prose", "code"),
                         verse = apart(name, "verse", "code");
            if (!std::isfinite(near) || !std::isfinite(prose) || !std::isfinite(verse)) continue;
            append_found(claim.found, label_of(name) + ": prose and verse " + number_text(near) + ", prose and code " +
                                          number_text(prose) + ", verse and code " + number_text(verse));
            parts.add(prose > near && verse > near);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim types_are_learned() const {
        Claim claim{"Which tokens go to softmax is learned from the loss alone",
                    "section 4.2: scores get the gradient of the loss, without any further loss",
                    "the share of softmax chunks changes by more than 1 point between the first and the last probe", "",
                    Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"natsl-hybrid", "natsl"}) {
            const auto found = in_.softmax_share.find(name);
            if (found == in_.softmax_share.end()) continue;
            append_found(claim.found, label_of(name) + " from " + share_text(found->second.first) + " to " +
                                          share_text(found->second.second));
            parts.add(std::abs(found->second.second - found->second.first) > 0.01);
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim latency_between() const {
        Claim claim{
            "NAtS-L Hybrid's latency lies between GDN's and the Transformer's",
            "Fig. 4, 128k tokens: prefill 1.66 times GDN's and 5.4 times faster than the Transformer; decoding "
            "2.3 times faster",
            "at the longest length that all three were timed at, prefill and decoding are no faster than 0.9 of "
            "GDN's, and faster than the Transformer's",
            "", Verdict::not_measured};
        const auto at = [&](const char* name, std::int64_t length) -> const Latency* {
            const auto own = in_.latency.find(name);
            if (own == in_.latency.end()) return nullptr;
            const auto found = own->second.find(length);
            return found == own->second.end() ? nullptr : &found->second;
        };
        const auto own = in_.latency.find("natsl-hybrid");
        if (own == in_.latency.end()) return claim;
        ClaimParts parts;
        for (auto length = own->second.rbegin(); length != own->second.rend(); ++length) {
            const Latency *gdn = at("gdn", length->first), *softmax = at("transformer", length->first);
            if (gdn == nullptr || softmax == nullptr) continue;
            const Latency& here = length->second;
            const auto tell = [&](const char* what, double ours, double linear, double quadratic) {
                if (!(ours > 0 && linear > 0 && quadratic > 0)) return;  // not measured
                append_found(claim.found, std::string(what) + " " + number_text(ours / linear) + " times GDN's, " +
                                              number_text(quadratic / ours) + " times faster than the Transformer's");
                parts.add(ours >= 0.9 * linear && ours < quadratic);
            };
            claim.found = "at " + std::to_string(length->first) + " tokens";
            tell("prefill", here.prefill, gdn->prefill, softmax->prefill);
            tell("decoding", here.decode, gdn->decode, softmax->decode);
            break;
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim equal_parameters() const {
        Claim claim{"All models have about the same number of parameters", "778 M to 802 M",
                    "the largest has at most 10 % more than the smallest", "", Verdict::not_measured};
        if (in_.parameters.size() < 2) return claim;
        std::int64_t least = in_.parameters.begin()->second, most = least;
        for (const Model& one : models()) {
            const auto found = in_.parameters.find(std::string(one.name));
            if (found == in_.parameters.end()) continue;
            least = std::min(least, found->second);
            most = std::max(most, found->second);
            append_found(claim.found, std::string(one.label) + " " + std::to_string(found->second));
        }
        claim.verdict = static_cast<double>(most) <= 1.1 * static_cast<double>(least) ? Verdict::held : Verdict::failed;
        return claim;
    }

    const Plan& plan_;
    const Measured& in_;
};

}  // namespace

TokenTypes read_token_types(const std::filesystem::path& analysis, const std::string& model, const std::string& text) {
    const auto file = store::AnalysisFile::open(analysis);
    const auto& header = file->header();
    const auto heads = static_cast<std::size_t>(header.most_heads());
    const auto values = file->indicator("softmax_fraction").data;
    TokenTypes types{model, text, {}};
    for (std::size_t site = 0; site < header.sites.size(); ++site) {
        std::vector<double> layer;
        for (std::size_t head = 0; head < heads; ++head) {
            const double value = values[site * heads + head];  // of the first sequence
            if (std::isfinite(value)) layer.push_back(value);
        }
        if (!layer.empty()) types.fractions.push_back(std::move(layer));
    }
    return types;
}

std::optional<std::pair<double, double>> softmax_share(const store::RunRecord& run) {
    for (const store::RunIndicator& one : run.probes.indicators) {
        if (one.name != "softmax_fraction" || run.probes.step.empty()) continue;
        const std::size_t size = one.values.size() / run.probes.step.size();
        const auto mean = [&](std::size_t probe) {
            double sum = 0, count = 0;
            for (std::size_t i = probe * size; i < (probe + 1) * size; ++i) {
                if (!std::isfinite(one.values[i])) continue;
                sum += one.values[i];
                ++count;
            }
            return sum / count;
        };
        const std::pair shares{mean(0), mean(run.probes.step.size() - 1)};
        if (std::isfinite(shares.first) && std::isfinite(shares.second)) return shares;
    }
    return std::nullopt;
}

bool learned(const Plan& plan) {
    return plan.tokens(Task::text) >= kTokensToJudge;
}

double perplexity_inside(const Plan& plan, const Measured& measured, const std::string& model) {
    const auto own = measured.position.find(model);
    if (own == measured.position.end()) return kNone;
    const auto found = own->second.find(plan.sequence_length);
    return found == own->second.end() ? kNone : found->second;
}

double perplexity_beyond(const Plan& plan, const Measured& measured, const std::string& model) {
    const auto own = measured.position.find(model);
    if (own == measured.position.end() || own->second.empty()) return kNone;
    const auto last = std::prev(own->second.end());
    return last->first > plan.sequence_length ? last->second : kNone;
}

double mean_recall(const Measured& measured, const std::string& trial) {
    const auto own = measured.recall.find(trial);
    if (own == measured.recall.end() || own->second.empty()) return kNone;
    double sum = 0;
    for (const auto& [length, accuracy] : own->second) sum += accuracy;
    return sum / static_cast<double>(own->second.size());
}

std::vector<Claim> judge(const Plan& plan, const Measured& measured) {
    std::vector<Claim> claims = Judge(plan, measured).all();
    if (learned(plan)) return claims;
    for (std::size_t i = 1; i + 2 < claims.size(); ++i)  // recall says so itself; latency and sizes need no learning
        if (claims[i].verdict != Verdict::not_measured) claims[i].verdict = Verdict::undecided;
    return claims;
}

std::string report_markdown(const ReportInput& input) {
    const Plan& plan = input.plan;
    const Measured& in = input.measured;
    std::string text;
    const auto line = [&text](const std::string& words = "") { text += words + "\n"; };
    line("# Neural Attention Search Linear, replayed small");
    line();
    line(
        "The paper (Deng, Winje, Fehring, Lindauer: *Neural Attention Search Linear: Towards Adaptive Token-Level "
        "Hybrid Attention Models*) trains models of 380 and 800 million parameters on 15 and 50 billion tokens. Here "
        "its six models were trained small, on one machine, in " +
        seconds_text(input.seconds) + ". What follows is what was measured, also where it is not what the paper says.");
    line();
    line("| | here | paper |");
    line("| --- | --- | --- |");
    line("| models | presets " + plan.size + "-*, six of them | 380M and 800M |");
    line("| tokens of each run | text " + millions_text(plan.tokens(Task::text)) + ", recall " +
         millions_text(plan.tokens(Task::recall)) + ", equal for all models | 15 000 M and 50 000 M |");
    line("| training length | " + std::to_string(plan.sequence_length) + " | 4096 |");
    line("| text | " + input.data + " | FineWeb-Edu |");
    line();
    text += claims_markdown(
        judge(plan, in), learned(plan) ? ""
                                       : "**Each model saw less than a million tokens of text: too few to learn more "
                                         "than how often words are. More minutes are needed for verdicts.**");
    line("## Perplexity (Table 1, Fig. 3)");
    line();
    line("Of held-out text, every block of " + std::to_string(plan.long_length()) +
         " tokens read alone: over the positions of the training length, and over the last ones.");
    line();
    line("| model | parameters | within | at the end | ratio | paper: parameters | paper: WikiText |");
    line("| --- | --- | --- | --- | --- | --- | --- |");
    for (const Model& one : models()) {
        const std::string name(one.name);
        const double inside = perplexity_inside(plan, in, name), beyond = perplexity_beyond(plan, in, name);
        const auto parameters = in.parameters.find(name);
        line("| " + std::string(one.label) + " | " +
             (parameters == in.parameters.end() ? "–" : millions_text(parameters->second)) + " | " +
             number_text(inside) + " | " + number_text(beyond) + " | " + number_text(beyond / inside) + " | " +
             number_text(one.parameters) + " M | " + number_text(one.wikitext) + " |");
    }
    line();
    line("## Retrieval (Table 1 and 2, Fig. 7)");
    line();
    line(
        "Four keys with values hidden in random tokens, one is asked for; accuracy by length. The paper: the mean of "
        "RULER's retrieval tasks at 1, 2 and 4 times its training length.");
    line();
    std::string head = "| model |", rule = "| --- |";
    for (const std::int64_t length : plan.recall_lengths()) {
        head += " " + std::to_string(length) + " |";
        rule += " --- |";
    }
    line(head + " paper |");
    line(rule + " --- |");
    const auto recall_row = [&](const std::string& label, const std::string& trial, const std::string& paper) {
        const auto own = in.recall.find(trial);
        if (own == in.recall.end()) return;
        std::string row = "| " + label + " |";
        for (const std::int64_t length : plan.recall_lengths()) {
            const auto found = own->second.find(length);
            row += " " + share_text(found == own->second.end() ? kNone : found->second) + " |";
        }
        line(row + " " + paper + " |");
    };
    for (const Model& one : models())
        recall_row(std::string(one.label), std::string(one.name) + "-recall",
                   number_text(one.ruler[0]) + ", " + number_text(one.ruler[1]) + ", " + number_text(one.ruler[2]));
    line();
    const bool ablated = std::any_of(plan.trials.begin(), plan.trials.end(), [&](const Trial& trial) {
        return !trial.ablation.empty() && in.recall.count(trial.name) > 0;
    });
    if (ablated) {
        line("## Ablations (Table 4)");
        line();
        line("NAtS-L Hybrid on the same task. The paper: mean of six retrieval tasks, 33.49 without ablation.");
        line();
        line(head + " paper |");
        line(rule + " --- |");
        recall_row("NAtS-L Hybrid", "natsl-hybrid-recall", "33.49");
        for (const Ablation& one : ablations())
            recall_row(std::string(one.label), "natsl-hybrid-" + std::string(one.name) + "-recall",
                       number_text(one.retrieval));
        line();
    }
    if (!in.latency.empty()) {
        line("## Latency (Fig. 4)");
        line();
        line("| model | tokens | prefill, s | one more token, ms | cache bytes |");
        line("| --- | --- | --- | --- | --- |");
        for (const Model& one : models()) {
            const auto own = in.latency.find(std::string(one.name));
            if (own == in.latency.end()) continue;
            for (const auto& [length, timed] : own->second)
                line("| " + std::string(one.label) + " | " + std::to_string(length) + " | " +
                     number_text(timed.prefill) + " | " + number_text(1000 * timed.decode) + " | " +
                     std::to_string(timed.cache_bytes) + " |");
        }
        line();
    }
    if (!in.types.empty()) {
        line("## Token types (Fig. 5, 8)");
        line();
        line("Share of the chunks that a head gives to softmax, by layer (heads in a row), on three kinds of text.");
        line();
        line("| model | text | NAtS-L layers |");
        line("| --- | --- | --- |");
        for (const TokenTypes& types : in.types) {
            std::string layers;
            for (const auto& layer : types.fractions) {
                std::string heads;
                for (const double fraction : layer) heads += (heads.empty() ? "" : " ") + number_text(fraction);
                layers += (layers.empty() ? "" : "; ") + heads;
            }
            line("| " + label_of(types.model) + " | " + types.text + " | " + layers + " |");
        }
        line();
    }
    text += figures_markdown(input.figures);
    line("## How it was done");
    line();
    text += effort_markdown(input, plan);
    const training::JobFile job = job_of(plan, {"natsl-text", "natsl", "", Task::text});
    line("- Every run: batches of " + std::to_string(plan.batch) + " sequences of " +
         std::to_string(plan.sequence_length) + " tokens, AdamW, learning rate " +
         number_text(job.optimizer.learning_rate) + " to " + number_text(job.schedule.minimum_rate) +
         " on a cosine after 5 % warm-up, float32; text " + std::to_string(plan.text_steps) + " steps, recall " +
         std::to_string(plan.recall_steps) + ".");
    line(
        "- Not repeated here: LongBench, the zero-shot tasks and the real retrieval tasks (models of this size are at "
        "chance).");
    for (const std::string& one : input.missing) line("- " + one);
    line();
    return text + commands_markdown(input);
}

}  // namespace headscope::reproduce::natsl
