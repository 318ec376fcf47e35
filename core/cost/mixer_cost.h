// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the papers say that a token mixer costs: Tables 5-8 of "Deconstructing Attention" (its appendices E to H). They
// count the attention sublayer of one layer without its output projection, matrix products only, and give bytes for
// half precision. Letters: B sequences, L tokens, d hidden size, h heads (d = h d_h), t tensor-parallel size.
// Knows no tensor: the window and figures use it. Threads: any. Errors: Error usage for a mixer that has no entry.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost/formula.h"

namespace headscope::cost {

/// What is asked for. The defaults are the paper's 500M model at its training length.
struct CostSetting {
    std::int64_t batch = 1;
    std::int64_t length = 2048;
    std::int64_t hidden = 896;
    std::int64_t heads = 14;
    std::int64_t tensor_parallel = 1;
    std::int64_t bytes = 2;  ///< of a number; the papers' byte formulas are for 2 and scale with it

    Letters letters() const;
    bool operator==(const CostSetting&) const = default;
};

struct MixerCost {
    std::string mixer;   ///< as files call it
    std::string label;   ///< as the paper calls it
    Formula time;        ///< complexity, up to a constant
    Formula prefill;     ///< floating-point operations of reading L tokens
    Formula decode;      ///< of one more token for each of B sequences, L of them in the cache
    Formula activation;  ///< bytes that training keeps for the backward pass, at 2 bytes a number
    Formula cache;       ///< bytes that inference holds, at 2 bytes a number
    std::optional<Formula> precomputed_prefill, precomputed_decode;  ///< with attention maps that are there already
};

/// In the paper's order; a mixer of a later paper adds its row.
const std::vector<MixerCost>& mixer_costs();
/// Throws Error usage that names those that have one.
const MixerCost& mixer_cost(std::string_view mixer);
bool has_cost(std::string_view mixer);

/// One mixer's formulas at one setting, as numbers.
struct CostNumbers {
    double time = 0, prefill = 0, decode = 0, activation = 0, cache = 0;
    std::optional<double> precomputed_prefill, precomputed_decode;
};
CostNumbers evaluate(const MixerCost& cost, const CostSetting& setting);

}  // namespace headscope::cost
