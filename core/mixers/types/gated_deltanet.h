// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

// Sizes of a recurrent mixer's heads, which are its own; 0: as many heads, as large, as the model's attention.
inline const Option kOwnHeads{"num_heads", std::int64_t{0}, {}, 0, 65536};
inline const Option kOwnValueHeads{"num_value_heads", std::int64_t{0}, {}, 0, 65536};
inline const Option kOwnKeySize{"head_dim", std::int64_t{0}, {}, 0, 65536};
inline const Option kExpandValue{"expand_v", 2.0, {}, 1e-4, 1024};
inline const Option kTaps{"conv_size", std::int64_t{4}, {}, 0, 64};  ///< 0: no convolution
/// beta reaches to 2, and an eigenvalue of what the state is multiplied by to -1 (Grazzi et al., arXiv 2411.12537).
inline const Option kNegativeEigenvalue{"allow_neg_eigval", false};

/// Gated DeltaNet (Yang et al., arXiv 2412.06464), in the conventions of flash-linear-attention.
inline const MixerType kGatedDeltaNet{
    .name = "gated_deltanet",
    .title = "Gated DeltaNet",
    .color = 2,
    .summary = "a state that every token decays and corrects by the delta rule",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnValueHeads, kOwnKeySize, kExpandValue, kTaps, {"use_gate", true}, kNegativeEigenvalue},
    .cost = {.time = kState,
             .prefill = "2 B L d (2 g k + (1 + u) n v + 2 n) + 6 B L n k v",
             .decode = "2 B d (2 g k + (1 + u) n v + 2 n) + 6 B n k v",
             .cache = "2 B n k v + 2 B p (2 g k + n v)",
             .parameters = "d (2 g k + (1 + u) n v + 2 n) + c (2 g k + n v) + 2 n + v"}};

/// DeltaNet (Yang et al., arXiv 2406.06484): the same without decay. `qk_norm` sum: queries and keys over the sum of
/// their numbers.
inline const MixerType kDeltaNet{.name = "deltanet",
                                 .title = "DeltaNet",
                                 .color = 4,
                                 .summary = "a state that every token corrects by the delta rule",
                                 .has_matrix = false,
                                 .options = {kOwnHeads,
                                             kOwnValueHeads,
                                             kOwnKeySize,
                                             {"expand_v", 1.0, {}, 1e-4, 1024},
                                             kTaps,
                                             {"use_gate", false},
                                             kNegativeEigenvalue,
                                             {"use_beta", true},
                                             {"qk_activation", "silu", {"silu", "relu", "elu", "identity"}},
                                             {"qk_norm", "l2", {"l2", "sum"}}},
                                 .cost = {.time = kState,
                                          .prefill = "2 B L d (2 g k + (1 + u) n v + w n) + 6 B L n k v",
                                          .decode = "2 B d (2 g k + (1 + u) n v + w n) + 6 B n k v",
                                          .cache = "2 B n k v + 2 B p (2 g k + n v)",
                                          .parameters = "d (2 g k + (1 + u) n v + w n) + c (2 g k + n v) + v"}};

}  // namespace headscope::mixers
