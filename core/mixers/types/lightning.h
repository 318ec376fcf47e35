// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Lightning attention (Qin et al., arXiv 2405.17381) as in MiniMax-01 (arXiv 2501.08313): head h of H forgets at the
/// rate of ALiBi's slope 2^(-8 (h + 1) / H), times what falls from 1 in the first layer to almost 0 in the last.
inline const MixerType kLightning{.name = "lightning",
                                  .title = "Lightning attention",
                                  .color = 5,
                                  .summary = "a state that decays at a fixed rate of each head and layer",
                                  .has_matrix = false,
                                  .options = {kOwnHeads, kOwnKeySize, {"expand_v", 1.0, {}, 1e-4, 1024}},
                                  .cost = {.time = kState,
                                           .prefill = "4 B L d n (k + v) + 4 B L n k v",
                                           .decode = "4 B d n (k + v) + 4 B n k v",
                                           .cache = "2 B n k v",
                                           .parameters = "2 d n (k + v) + n v"}};

}  // namespace headscope::mixers
