// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/mixer_cost.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/mixers/types/type.h"

namespace headscope::cost {
namespace {

MixerCost cost_of(const mixers::MixerType& type) {
    const mixers::MixerCostText& text = type.cost;
    MixerCost cost{type.name, text.label, text.time, text.prefill, text.decode, text.activation, text.cache, {}, {}};
    if (*text.precomputed_prefill != '\0') cost.precomputed_prefill = Formula(text.precomputed_prefill);
    if (*text.precomputed_decode != '\0') cost.precomputed_decode = Formula(text.precomputed_decode);
    return cost;
}

}  // namespace

Letters CostSetting::letters() const {
    return {{'B', static_cast<double>(batch)},
            {'L', static_cast<double>(length)},
            {'d', static_cast<double>(hidden)},
            {'h', static_cast<double>(heads)},
            {'t', static_cast<double>(tensor_parallel)}};
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
    const Letters letters = setting.letters();
    const double half = static_cast<double>(setting.bytes) / 2.0;
    CostNumbers numbers{cost.time(letters),
                        cost.prefill(letters),
                        cost.decode(letters),
                        half * cost.activation(letters),
                        half * cost.cache(letters),
                        {},
                        {}};
    if (cost.precomputed_prefill) numbers.precomputed_prefill = (*cost.precomputed_prefill)(letters);
    if (cost.precomputed_decode) numbers.precomputed_decode = (*cost.precomputed_decode)(letters);
    return numbers;
}

}  // namespace headscope::cost
