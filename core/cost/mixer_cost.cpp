// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/mixer_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/mixers/types/alibi.h"
#include "core/mixers/types/lazy.h"
#include "core/mixers/types/natsl.h"
#include "core/mixers/types/state_sizes.h"
#include "core/mixers/types/streaming_llm.h"
#include "core/mixers/types/test_time.h"

namespace headscope::cost {
namespace {

MixerCost cost_of(const mixers::MixerType& type) {
    const mixers::MixerCostText& text = type.cost;
    MixerCost cost{type.name,  type.column_title(), text.time, text.prefill, text.decode, text.activation,
                   text.cache, text.parameters,     {},        {},           {},          {}};
    if (*text.precomputed_prefill != '\0') cost.precomputed_prefill = Formula(text.precomputed_prefill);
    if (*text.precomputed_decode != '\0') cost.precomputed_decode = Formula(text.precomputed_decode);
    if (type.query_key_source == mixers::QueryKeySource::embedding)
        cost.scores_before = Formula("(l - 1) (B L^2 d + B L d^2)");
    if (type.reads_guide()) cost.prefetch = Formula("2 (2 L + D) D");
    return cost;
}

}  // namespace

Letters CostSetting::letters(std::string_view mixer) const {
    const mixers::MixerType* type = mixers::find_type(mixer);
    if (type == nullptr) throw Error(ErrorCode::usage, "mixer", "expected a known mixer", "found " + escaped(mixer));
    const mixers::StateSizes sizes =
        mixers::state_sizes(*type, options, heads, head_size > 0 ? head_size : hidden / heads);
    const auto number = [](auto value) { return static_cast<double>(value); };
    const auto says = [&](std::string_view key) {
        return std::any_of(type->options.begin(), type->options.end(),
                           [key](const Option& own) { return key == own.name; }) &&
               options.get<bool>(*type, key);
    };
    Letters letters{{'B', number(batch)},
                    {'L', number(length)},
                    {'d', number(hidden)},
                    {'h', number(heads)},
                    {'t', number(tensor_parallel)},
                    {'n', number(sizes.heads)},
                    {'g', number(sizes.groups)},
                    {'k', number(sizes.key_size)},
                    {'v', sizes.value_size},
                    {'c', number(sizes.taps)},
                    {'p', number(std::max<std::int64_t>(sizes.taps - 1, 0))},
                    {'u', says("use_gate") ? 1 : 0},
                    {'w', says("use_beta") ? 1 : 0}};
    const auto whole = [&](std::string_view key) { return options.get<std::int64_t>(*type, key); };
    const auto word = [&](std::string_view key) { return options.get<std::string>(*type, key); };
    letters['l'] = std::log2(number(length) * number(hidden));
    if (type == &mixers::kLazy) {
        letters['b'] = says("distance_bias") ? number(whole("window")) : 0;
        // Numbers of each head: an offset, a slope.
        letters['o'] = (word("normaliser") == "elastic" && word("offset") != "fixed" ? 1 : 0) +
                       (word("slopes") == "trained" ? 1 : 0);
    } else if (type == &mixers::kAlibi) {
        letters['o'] = says("trained") ? 1 : 0;
    } else if (type == &mixers::kStreamingLlm) {
        letters['q'] = number(std::min(length, whole("first") + whole("window") - 1));
        letters['r'] = word("positions") == "cache" ? 2 : 1;
    } else if (type == &mixers::kTttLinear || type == &mixers::kTitans) {
        letters['C'] = number(whole(mixers::kMiniBatch.name));
    }
    if (type != &mixers::kNatsl) return letters;
    const auto softmax_heads = whole("num_softmax_heads");
    const auto weights = word("weights");
    letters['m'] = number(softmax_heads > 0 ? softmax_heads : sizes.heads);
    letters['C'] = number(whole("chunk_size"));
    letters['s'] = softmax_share;
    letters['x'] = weights == "none" ? 0 : number(weights == "input" ? hidden : sizes.heads * sizes.key_size);
    letters['y'] = word("norm") == "sum" ? 1 : 2;
    return letters;
}

const std::vector<MixerCost>& mixer_costs() {
    static const std::vector<MixerCost> costs = [] {
        std::vector<MixerCost> all;
        for (const mixers::MixerType* type : mixers::known_types()) {
            if (*type->cost.time != '\0') all.push_back(cost_of(*type));
        }
        return all;
    }();
    return costs;
}

const std::vector<std::string>& paper_mixers() {
    static const std::vector<std::string> mixers =
        mixers::names_where([](const mixers::MixerType& type) { return type.in_deconstructing; });
    return mixers;
}

std::vector<std::string> shown_mixers(const std::vector<std::string>& models) {
    const auto holds = [](const std::vector<std::string>& all, const std::string& mixer) {
        return std::find(all.begin(), all.end(), mixer) != all.end();
    };
    std::vector<std::string> shown;
    for (const MixerCost& cost : mixer_costs())
        if (holds(paper_mixers(), cost.mixer) || holds(models, cost.mixer)) shown.push_back(cost.mixer);
    return shown;
}

bool has_cost(std::string_view mixer) {
    const auto& all = mixer_costs();
    return std::any_of(all.begin(), all.end(), [&](const MixerCost& cost) { return cost.mixer == mixer; });
}

const MixerCost& mixer_cost(std::string_view mixer) {
    std::string known;
    for (const MixerCost& cost : mixer_costs()) {
        if (cost.mixer == mixer) return cost;
        known += (known.empty() ? "" : ", ") + cost.mixer;
    }
    throw Error(ErrorCode::usage, "mixer", "expected one of " + known, "found " + escaped(mixer));
}

CostNumbers evaluate(const MixerCost& cost, const CostSetting& setting) {
    const Letters letters = setting.letters(cost.mixer);
    const double half = static_cast<double>(setting.bytes) / 2.0;
    CostNumbers numbers{cost.time(letters),
                        cost.prefill(letters),
                        cost.decode(letters),
                        half * cost.activation(letters),
                        half * cost.cache(letters),
                        cost.parameters(letters),
                        {},
                        {},
                        {},
                        {}};
    if (cost.precomputed_prefill) numbers.precomputed_prefill = (*cost.precomputed_prefill)(letters);
    if (cost.precomputed_decode) numbers.precomputed_decode = (*cost.precomputed_decode)(letters);
    Letters more = letters;
    more['l'] = static_cast<double>(setting.layers);  // in the other formulas FNet's logarithm
    more['D'] = static_cast<double>(setting.prefetch);
    if (cost.scores_before) numbers.scores_before = (*cost.scores_before)(more);
    if (cost.prefetch && setting.prefetch > 0) numbers.prefetch = half * (*cost.prefetch)(more);
    return numbers;
}

std::vector<NormalizerCost> normalizer_costs(const mixers::MixerType& type) {
    static constexpr std::array all{
        NormalizerCost{"softmax", "n^2", "native"}, NormalizerCost{"elastic", "n^2", "two-pass"},
        NormalizerCost{"sparsemax", "n^2 log n", "two-pass"}, NormalizerCost{"entmax", "n^2 log n", "two-pass"}};
    std::vector<NormalizerCost> costs;
    for (const Option& option : type.options) {
        if (option.name != std::string_view("normaliser")) continue;
        for (const std::string& choice : option.choices) {
            const auto* const found =
                std::find_if(all.begin(), all.end(), [&](const NormalizerCost& one) { return choice == one.name; });
            if (found == all.end())
                throw Error(ErrorCode::internal, "normaliser", "expected a cost of each value", "found " + choice);
            costs.push_back(*found);
        }
    }
    return costs;
}

}  // namespace headscope::cost
