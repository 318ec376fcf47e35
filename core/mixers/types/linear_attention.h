// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Heads that keys and values have, each for several queries; 0: as many as there are queries.
inline const Option kOwnKeyValueHeads{"num_key_value_heads", std::int64_t{0}, {}, 0, 65536};

/// RetNet (Sun et al., arXiv 2307.08621): head h forgets 2^(-5 - h) of its state with every token. `rope_theta` 0: the
/// model's.
inline const MixerType kRetNet{
    .name = "retnet",
    .title = "RetNet",
    .color = 5,
    .summary = "a state that decays at a fixed rate of each head",
    .has_matrix = false,
    .options =
        {kOwnHeads, kOwnKeyValueHeads, kOwnKeySize, kExpandValue, {"use_gate", true}, {"rope_theta", 0.0, {}, 0, 1e12}},
    .cost = {.time = kState,
             .prefill = "2 B L d (n k + g (k + v) + u n v) + 4 B L n k v",
             .decode = "2 B d (n k + g (k + v) + u n v) + 4 B n k v",
             .cache = "2 B n k v",
             .parameters = "d (n k + g (k + v) + u n v) + v"}};

/// Gated linear attention (Yang et al., arXiv 2312.06635), in the conventions of flash-linear-attention. `clamp_min`:
/// the smallest log decay of a token; 0: none.
inline const MixerType kGla{.name = "gla",
                            .title = "Gated linear attention",
                            .short_title = "GLA",
                            .color = 6,
                            .summary = "a state each of whose rows every token decays by a factor of its own",
                            .has_matrix = false,
                            .options = {kOwnHeads,
                                        kOwnKeyValueHeads,
                                        kOwnKeySize,
                                        kExpandValue,
                                        {"conv_size", std::int64_t{0}, {}, 0, 64},
                                        {"use_gate", true},
                                        {"clamp_min", 0.0, {}, -1e6, 0}},
                            .cost = {.time = kState,
                                     .prefill = "2 B L d (n k + g (k + v) + u n v + 16) + 32 B L g k + 4 B L n k v",
                                     .decode = "2 B d (n k + g (k + v) + u n v + 16) + 32 B g k + 4 B n k v",
                                     .cache = "2 B n k v + 2 B p (n k + g (k + v))",
                                     .parameters = "d (n k + g (k + v) + u n v + 16) + 17 g k + c (n k + g (k + v)) + "
                                                   "v"}};

}  // namespace headscope::mixers
