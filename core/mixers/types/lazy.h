// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Lazy Attention ("Attention Needs to Focus", Fu et al.). `window`: how many distances have a bias; `offset`: what is
/// added to a weight of the elastic normaliser is tau / i, tau, or -1 / i without anything learned. Its ablations and
/// the rows of Table 2 are options. `slopes`: ALiBi's are subtracted, too (Appendix D).
inline const MixerType kLazy{
    .name = "lazy",
    .title = "Lazy Attention",
    .color = 6,
    .summary = "softmax attention with a learned bias by distance; weights are cut off below an offset",
    .options = {{"window", std::int64_t{512}, {}, 1, 65536},
                {"distance_bias", true},
                {"normaliser", "elastic", {"elastic", "softmax", "sparsemax", "entmax"}},
                {"offset", "per_length", {"per_length", "constant", "fixed"}},
                {"offset_init", -1.0, {}, -1e3, 1e3},
                {"slopes", "none", {"none", "fixed", "trained"}}},
    .cost = {.time = kQuadratic,
             .prefill = kMatrices,
             .decode = kMatricesOfOne,
             .cache = kKeysValues,
             .parameters = "3 d^2 + (b + o) h"}};

}  // namespace headscope::mixers
