// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/mixer_cost.h"

#include <algorithm>

#include "core/base/error.h"

namespace headscope::cost {
namespace {

// What several mixers share.
constexpr const char* kQuadratic = "B L^2 d + B L d^2";
constexpr const char* kLinear = "B L d^2";
constexpr const char* kProjections = "6 B L d^2";
constexpr const char* kProjectionsOfOne = "6 B d^2";
constexpr const char* kMatrices = "4 B L^2 d + 6 B L d^2";
constexpr const char* kMatricesOfOne = "6 B d^2 + 4 B L d";
constexpr const char* kKept = "(8 B L d + 2 B L^2 h) / t";
constexpr const char* kKeysValues = "4 B L d";

/// Maps that depend on no text: RndEmbQK and FixedSeqQK. The last entry is printed without B (Appendix F).
MixerCost fixed_maps(const char* mixer, const char* label) {
    return {mixer,
            label,
            kQuadratic,
            "2 L^2 d + 2 B L^2 d + 6 B L d^2",
            "2 L d + 2 B L d + 6 B d^2",
            "(4 B L d + 8 L d + 2 L^2 h) / t",
            "2 (B + 1) L d",
            "2 L^2 d + 2 B L d^2",
            "2 B L d + 2 d^2"};
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
    static const std::vector<MixerCost> costs{
        {"standard", "Standard", kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues, {}, {}},
        {"mlp", "MLP", kLinear, kProjections, kProjectionsOfOne, "8 B L d / t", "0", {}, {}},
        {"approximate",
         "Approximate",
         kLinear,
         "14 B L d^2",
         "10 B d^2",
         "11 B L d / t + 3 B d^2 / (h t)",
         "6 B d + 4 B d^2 / h",
         {},
         {}},
        {"non_approximate",
         "Non-approximate",
         kLinear,
         kProjections,
         kProjectionsOfOne,
         "(8 B L d + 4 B L h) / t",
         "2 B d + 4 B h",
         {},
         {}},
        fixed_maps("rnd_emb_qk", "RndEmbQK"),
        fixed_maps("fixed_seq_qk", "FixedSeqQK"),
        {"static_emb_qk", "StaticEmbQK", kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues, {}, {}}};
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
