// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Maps that depend on no text. The last entry is printed without B (Appendix F).
constexpr MixerCostText fixed_maps_cost() {
    return {kQuadratic,
            "2 L^2 d + 2 B L^2 d + 6 B L d^2",
            "2 L d + 2 B L d + 6 B d^2",
            "(4 B L d + 8 L d + 2 L^2 h) / t",
            "2 (B + 1) L d",
            "2 L^2 d + 2 B L d^2",
            "2 B L d + 2 d^2"};
}

inline const MixerType kRandomGuide{
    .name = "rnd_emb_qk",
    .title = "RndEmbQK",
    .color = 3,
    .summary = "query and key from noise that goes through the stack, the same for every text",
    .query_key_source = QueryKeySource::random_guide,
    .in_deconstructing = true,
    .cost = fixed_maps_cost()};

inline const MixerType kFixedGuide{.name = "fixed_seq_qk",
                                   .title = "FixedSeqQK",
                                   .color = 4,
                                   .summary = "query and key from a fixed text that goes through the stack",
                                   .query_key_source = QueryKeySource::fixed_guide,
                                   .in_deconstructing = true,
                                   .cost = fixed_maps_cost()};

}  // namespace headscope::mixers
