// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Mamba2 (Dao and Gu, arXiv 2405.21060). `num_heads` 0: twice as many as the model's attention has, which makes twice
/// the hidden size; `head_dim` 0: as large. A group of heads shares what it writes under and reads by.
inline const MixerType kMamba2{.name = "mamba2",
                               .title = "Mamba2",
                               .color = 1,
                               .summary = "a state that every token decays by the step that it writes with",
                               .has_matrix = false,
                               .options = {kOwnHeads,
                                           kOwnKeySize,
                                           {"state_size", std::int64_t{128}, {}, 1, 65536},
                                           {"num_groups", std::int64_t{1}, {}, 1, 65536},
                                           kTaps},
                               // c less p is 1 where there is a convolution, which has a bias then.
                               .cost = {.time = kState,
                                        .prefill = "2 B L d (2 n v + 2 g k + n) + 4 B L n k v",
                                        .decode = "2 B d (2 n v + 2 g k + n) + 4 B n k v",
                                        .cache = "2 B n k v + 2 B p (n v + 2 g k)",
                                        .parameters = "d (2 n v + 2 g k + n) + (2 c - p) (n v + 2 g k) + 3 n + n v"}};

}  // namespace headscope::mixers
