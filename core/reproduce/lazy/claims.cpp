// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/lazy/claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/store/analysis_file.h"

namespace headscope::reproduce::lazy {
namespace {

constexpr double kNone = kNotPrinted;

/// Of the numbers among them; NaN where there is none.
template <class Values>
double mean_of(const Values& values) {
    double sum = 0, count = 0;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        sum += value;
        ++count;
    }
    return count > 0 ? sum / count : kNone;
}

std::string label_of(std::string_view name) {
    return std::string(model(name).label);
}

/// What even weights give the first of `length` keys: the mean of 1 / i.
double even_sink(std::size_t length) {
    double sum = 0;
    for (std::size_t i = 1; i <= length; ++i) sum += 1 / static_cast<double>(i);
    return sum / static_cast<double>(length);
}

class Judge {
public:
    Judge(const Plan& plan, const Measured& measured) : plan_(plan), in_(measured) {}

    std::vector<Claim> all() const {
        return {no_sink(),
                is_sparse(),
                per_length_beats_constant(),
                learned_beats_fixed(),
                start_matters(),
                costs_little(),
                smaller_degradation(),
                biases_carry_length(),
                first_biases_decay(),
                last_biases_do_not(),
                first_offsets_lowest(),
                better_than_transformer(),
                sigmoid_is_worse(),
                sink_is_semantic_agnostic(),
                keeps_up()};
    }

private:
    const Attended* attended(const std::string& name) const {
        const auto found = in_.attended.find(name);
        return found == in_.attended.end() ? nullptr : &found->second;
    }
    double sink(const std::string& name) const { return attended(name) != nullptr ? attended(name)->sink : kNone; }
    double loss(const std::string& name) const {
        const auto found = in_.loss.find(name);
        return found == in_.loss.end() ? kNone : found->second;
    }

    /// `holds` of two numbers, where both were measured.
    template <class Holds>
    static void compare(ClaimParts& parts, double own, double other, const Holds& holds) {
        if (std::isfinite(own) && std::isfinite(other)) parts.add(holds(own, other));
    }

    template <class Value, class Text>
    static void tell(std::string& found, const std::vector<std::string>& names, const Value& value, const Text& text) {
        for (const std::string& name : names)
            if (const double number = value(name); std::isfinite(number))
                append_found(found, label_of(name) + " " + text(number));
    }
    void tell_losses(std::string& found, const std::vector<std::string>& names) const {
        tell(
            found, names, [this](const auto& name) { return loss(name); }, number_text);
    }
    void tell_sinks(std::string& found, const std::vector<std::string>& names) const {
        tell(
            found, names, [this](const auto& name) { return sink(name); }, share_text);
    }
    void tell_perplexities(std::string& found, const std::vector<std::string>& names) const {
        tell(
            found, names, [this](const auto& name) { return perplexity_at(plan_, in_, name, 1); }, number_text);
    }

    Claim no_sink() const {
        Claim claim{"Lazy Attention has no attention sink",
                    "Table 2: 0.18 % of a row on the first token; softmax 5.46 %",
                    "the mean weight on the first token is below 1 %, and below a third of that with softmax instead "
                    "of Elastic-Softmax",
                    "", Verdict::not_measured};
        tell_sinks(claim.found, {"lazy", "softmax", "transformer"});
        ClaimParts parts;
        if (std::isfinite(sink("lazy"))) parts.add(sink("lazy") < 0.01);
        compare(parts, sink("lazy"), sink("softmax"), [](double own, double other) { return own < other / 3; });
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim is_sparse() const {
        Claim claim{"More than half of Lazy Attention's weight is released",
                    "59.58 % of sparsity, which is 1 - 40.24 % - 0.18 % of Table 2",
                    "1 - density - sink is above 50 %, and so is the share of weights that are exactly 0", "",
                    Verdict::not_measured};
        const Attended* own = attended("lazy");
        if (own == nullptr) return claim;
        claim.found = share_text(own->released) + " released, " + share_text(own->zeros) + " of the weights are 0";
        ClaimParts parts;
        for (const double share : {own->released, own->zeros})
            if (std::isfinite(share)) parts.add(share > 0.5);
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim per_length_beats_constant() const {
        Claim claim{"An offset divided by the number of keys is better than a constant one",
                    "Table 2, loss: 2.64 (from -1) and 2.65 (from 0), constant 2.75",
                    "the held-out loss of both is below that of the constant one", "", Verdict::not_measured};
        tell_losses(claim.found, {"lazy", "from-zero", "constant"});
        ClaimParts parts;
        for (const char* name : {"lazy", "from-zero"}) compare(parts, loss(name), loss("constant"), std::less<>());
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim learned_beats_fixed() const {
        Claim claim{"A learned offset is better than a fixed one", "Table 2, loss: 2.64 learned, 2.67 fixed at -1 / i",
                    "the held-out loss of the learned one is the lower", "", Verdict::not_measured};
        tell_losses(claim.found, {"lazy", "fixed"});
        ClaimParts parts;
        compare(parts, loss("lazy"), loss("fixed"), std::less<>());
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim start_matters() const {
        Claim claim{"An offset that begins at 0 leaves a sink, one that begins at -1 does not",
                    "Table 2, sink: 4.15 % from 0, 0.18 % from -1",
                    "the sink with an offset from -1 is below half of that with one from 0", "", Verdict::not_measured};
        tell_sinks(claim.found, {"lazy", "from-zero"});
        ClaimParts parts;
        compare(parts, sink("lazy"), sink("from-zero"), [](double own, double other) { return own < other / 2; });
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim costs_little() const {
        Claim claim{"Elastic-Softmax costs little against softmax", "Table 2, loss: 2.64, softmax 2.62",
                    "its held-out loss is at most 2 % above that with softmax", "", Verdict::not_measured};
        tell_losses(claim.found, {"lazy", "softmax"});
        ClaimParts parts;
        compare(parts, loss("lazy"), loss("softmax"), [](double own, double other) { return own <= 1.02 * other; });
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim smaller_degradation() const {
        Claim claim{"Beyond its training length Lazy Attention loses less than the Transformer",
                    "Fig. 6: substantially smaller degradation at 2 and 4 times the training length of 512",
                    "perplexity at 2 and at 4 times the training length, over that at the training length, is lower "
                    "than the Transformer's",
                    "", Verdict::not_measured};
        ClaimParts parts;
        for (const std::int64_t times : {2, 4}) {
            const double own = degradation(plan_, in_, "lazy", times),
                         other = degradation(plan_, in_, "transformer", times);
            if (std::isfinite(own) && std::isfinite(other))
                append_found(claim.found, "at " + std::to_string(times) + " times: " + number_text(own) +
                                              " times the perplexity, Transformer++ " + number_text(other));
            compare(parts, own, other, std::less<>());
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim biases_carry_length() const {
        Claim claim{"Without its biases Lazy Attention loses much more beyond the training length",
                    "section 5.5: removing the biases severely hurts performance at long lengths",
                    "perplexity at 4 times the training length, over that at the training length, is at least 5 % "
                    "higher without biases",
                    "", Verdict::not_measured};
        const double own = degradation(plan_, in_, "lazy", 4), other = degradation(plan_, in_, "no-bias", 4);
        if (std::isfinite(own) && std::isfinite(other))
            claim.found = "with biases " + number_text(own) + " times the perplexity, without " + number_text(other);
        ClaimParts parts;
        compare(parts, own, other, [](double with, double without) { return without >= 1.05 * with; });
        claim.verdict = parts.verdict();
        return claim;
    }

    const std::vector<std::vector<double>>* learned_biases() const {
        const Attended* own = attended("lazy");
        return own == nullptr || own->biases.empty() ? nullptr : &own->biases;
    }

    Claim first_biases_decay() const {
        Claim claim{"The first layer's biases decay with distance", "Fig. 4: about linear in the distance, as ALiBi's",
                    "the first layer's bias, mean over heads, correlates with distance below -0.5, and is higher over "
                    "the nearest eighth of the distances than over the farther half",
                    "", Verdict::not_measured};
        const auto* biases = learned_biases();
        if (biases == nullptr) return claim;
        const Decay first = decay_of(biases->front());
        if (!std::isfinite(first.correlation)) return claim;
        claim.found = "correlation " + number_text(first.correlation) + ", drop " + number_text(first.drop);
        ClaimParts parts;
        parts.add(first.correlation < -0.5 && first.drop > 0);
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim last_biases_do_not() const {
        Claim claim{"Upper layers do not penalise distance",
                    "Fig. 4: the middle layers' decay is about half of the first's, the upper layers have none",
                    "the last layer's drop is at most half of the first's", "", Verdict::not_measured};
        const auto* biases = learned_biases();
        if (biases == nullptr || biases->size() < 2) return claim;
        for (const auto& layer : *biases) append_found(claim.found, number_text(decay_of(layer).drop));
        claim.found = "drops by layer " + claim.found;
        ClaimParts parts;
        compare(parts, decay_of(biases->back()).drop, decay_of(biases->front()).drop,
                [](double last, double first) { return first > 0 && last <= first / 2; });
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim first_offsets_lowest() const {
        Claim claim{"The first layer filters most: its offsets are the most negative",
                    "Fig. 5: exceptionally large in the first layer, about -1 in layers 2 to 17",
                    "no layer's mean offset is below the first's", "", Verdict::not_measured};
        const Attended* own = attended("lazy");
        if (own == nullptr || own->offsets.size() < 2) return claim;
        std::vector<double> means;
        for (const auto& layer : own->offsets) {
            means.push_back(mean_of(layer));
            append_found(claim.found, number_text(means.back()));
        }
        claim.found = "means by layer " + claim.found;
        ClaimParts parts;
        parts.add(*std::min_element(means.begin(), means.end()) == means.front());
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim better_than_transformer() const {
        Claim claim{"Lazy Attention's perplexity is lower than the Transformer's",
                    "Table 1, WikiText: 25.32 and 25.76 (340M), 24.08 and 25.21 (760M)",
                    "its perplexity at the training length is below Transformer++'s", "", Verdict::not_measured};
        tell_perplexities(claim.found, {"lazy", "transformer", "no-bias", "softmax"});
        ClaimParts parts;
        compare(parts, perplexity_at(plan_, in_, "lazy", 1), perplexity_at(plan_, in_, "transformer", 1),
                std::less<>());
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim sigmoid_is_worse() const {
        Claim claim{"Sigmoid attention is worse than Transformer++ and Lazy Attention",
                    "Table 1, WikiText: 26.65; 25.76 and 25.32", "its perplexity at the training length is above both",
                    "", Verdict::not_measured};
        tell_perplexities(claim.found, {"sigmoid", "transformer", "lazy"});
        ClaimParts parts;
        for (const char* name : {"transformer", "lazy"})
            compare(parts, perplexity_at(plan_, in_, "sigmoid", 1), perplexity_at(plan_, in_, name, 1),
                    std::greater<>());
        claim.verdict = parts.verdict();
        return claim;
    }

    Claim sink_is_semantic_agnostic() const {
        Claim claim{"A fixed token near the begin takes the sink over, one far from it does not",
                    "Fig. 2(a): Mask@2 attracts the attention from the first position; from about 16 tokens on the "
                    "first has it again",
                    "a query's mean weight on the fixed token at 2 is above that on the first token, on the one at 16 "
                    "below it; undecided where Transformer++ gives the first token less than twice its even share",
                    "", Verdict::not_measured};
        ClaimParts parts;
        for (const char* name : {"mask-2", "mask-16"}) {
            const Attended* own = attended(name);
            const auto place = static_cast<std::size_t>(model(name).mask);
            if (own == nullptr || own->on_key.size() <= place) continue;
            const double first = own->on_key.front(), fixed = own->on_key[place];
            if (!std::isfinite(first) || !std::isfinite(fixed)) continue;
            append_found(claim.found,
                         label_of(name) + ": first token " + share_text(first) + ", fixed token " + share_text(fixed));
            parts.add(place == 2 ? fixed > first : fixed < first);
        }
        claim.verdict = parts.verdict();
        const Attended* plain = attended("transformer");
        if (claim.verdict == Verdict::not_measured || plain == nullptr || plain->on_key.empty()) return claim;
        append_found(claim.found, "Transformer++: first token " + share_text(plain->on_key.front()) + ", even share " +
                                      share_text(even_sink(plain->on_key.size())));
        if (plain->on_key.front() < 2 * even_sink(plain->on_key.size())) claim.verdict = Verdict::undecided;
        return claim;
    }

    Claim keeps_up() const {
        Claim claim{"Lazy Attention keeps up with recurrent models",
                    "Table 1, WikiText: 25.32, Gated DeltaNet 24.90, Titans 25.07 (340M); 24.08, RetNet 26.08, TTT "
                    "24.17, Gated DeltaNet 21.18, Titans 20.04 (760M)",
                    "its perplexity at the training length is at most 5 % above that of each that was trained", "",
                    Verdict::not_measured};
        tell_perplexities(claim.found, {"lazy"});
        ClaimParts parts;
        for (const Model& one : models()) {
            if (!one.baseline) continue;
            const std::string name(one.name);
            tell_perplexities(claim.found, {name});
            compare(parts, perplexity_at(plan_, in_, "lazy", 1), perplexity_at(plan_, in_, name, 1),
                    [](double own, double other) { return own <= 1.05 * other; });
        }
        claim.verdict = parts.verdict();
        return claim;
    }

    const Plan& plan_;
    const Measured& in_;
};

}  // namespace

Attended read_attended(const std::filesystem::path& analysis) {
    const auto file = store::AnalysisFile::open(analysis);
    const auto& header = file->header();
    const auto sites = header.sites.size(), heads = static_cast<std::size_t>(header.most_heads());
    const auto length = static_cast<std::size_t>(header.longest());
    std::vector<std::size_t> sequences;  // a shorter one at the end has another even share
    for (std::size_t s = 0; s < header.sequences.size(); ++s)
        if (header.sequences[s].ids.size() == length) sequences.push_back(s);
    Attended attended;
    const auto mean = [&](const char* name, std::vector<double>* by_layer) {
        const auto stored = file->indicator(name);
        std::vector<std::vector<double>> layers(sites);
        std::vector<double> all;
        for (const std::size_t s : sequences) {
            for (std::size_t site = 0; site < sites; ++site) {
                const auto begin = stored.data.begin() + static_cast<std::ptrdiff_t>((s * sites + site) * heads);
                layers[site].insert(layers[site].end(), begin, begin + static_cast<std::ptrdiff_t>(heads));
                all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(heads));
            }
        }
        if (by_layer != nullptr)
            for (const auto& layer : layers) by_layer->push_back(mean_of(layer));
        return mean_of(all);
    };
    attended.density = mean("density", nullptr);
    attended.sink = mean("sink", nullptr);
    attended.released = mean("sparsity", nullptr);
    attended.zeros = mean("zero_fraction", &attended.layer_zeros);
    std::vector<std::vector<double>> on_key(length);
    for (const std::size_t s : sequences) {
        for (std::size_t site = 0; site < sites; ++site) {
            const auto stored = file->column_mass(static_cast<std::int64_t>(s), static_cast<std::int64_t>(site)).data;
            for (std::size_t i = 0; i < stored.size(); ++i) on_key[i % length].push_back(stored[i]);
        }
    }
    for (const auto& key : on_key) attended.on_key.push_back(mean_of(key));
    if (const auto stored = file->parameters("offset")) {
        for (std::size_t site = 0; site < sites; ++site) {
            std::vector<double> layer;
            for (std::size_t h = 0; h < heads; ++h)
                if (const double offset = stored->data[site * heads + h]; std::isfinite(offset))
                    layer.push_back(offset);
            if (!layer.empty()) attended.offsets.push_back(std::move(layer));
        }
    }
    if (const auto stored = file->parameters("distance_bias")) {
        const auto window = static_cast<std::size_t>(stored->shape.at(2));
        for (std::size_t site = 0; site < sites; ++site) {
            std::vector<double> layer;
            for (std::size_t d = 0; d < window; ++d) {
                std::vector<double> each;
                for (std::size_t h = 0; h < heads; ++h) each.push_back(stored->data[(site * heads + h) * window + d]);
                layer.push_back(mean_of(each));
            }
            if (std::isfinite(mean_of(layer))) attended.biases.push_back(std::move(layer));
        }
    }
    return attended;
}

bool learned(const Plan& plan) {
    return plan.tokens() >= kTokensToJudge;
}

double perplexity_at(const Plan& plan, const Measured& measured, const std::string& model, std::int64_t times) {
    const auto own = measured.perplexity.find(model);
    if (own == measured.perplexity.end()) return kNone;
    const auto found = own->second.find(times * plan.sequence_length);
    return found == own->second.end() ? kNone : found->second;
}

double degradation(const Plan& plan, const Measured& measured, const std::string& model, std::int64_t times) {
    return perplexity_at(plan, measured, model, times) / perplexity_at(plan, measured, model, 1);
}

Decay decay_of(const std::vector<double>& biases) {
    if (biases.size() < 8) return {};
    const auto count = static_cast<double>(biases.size());
    const double middle = (count - 1) / 2, mean = std::accumulate(biases.begin(), biases.end(), 0.0) / count;
    double both = 0, distances = 0, squares = 0, near = 0, far = 0;
    const std::size_t eighth = biases.size() / 8, half = biases.size() / 2;
    for (std::size_t d = 0; d < biases.size(); ++d) {
        const double x = static_cast<double>(d) - middle, y = biases[d] - mean;
        both += x * y;
        distances += x * x;
        squares += y * y;
        if (d < eighth) near += biases[d] / static_cast<double>(eighth);
        if (d >= half) far += biases[d] / static_cast<double>(biases.size() - half);
    }
    return {squares > 0 ? both / std::sqrt(distances * squares) : 0, near - far};
}

std::vector<Claim> judge(const Plan& plan, const Measured& measured) {
    std::vector<Claim> claims = Judge(plan, measured).all();
    if (learned(plan)) return claims;
    for (Claim& claim : claims)
        if (claim.verdict != Verdict::not_measured) claim.verdict = Verdict::undecided;
    return claims;
}

}  // namespace headscope::reproduce::lazy
