// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Kimi delta attention (arXiv 2510.26692): Gated DeltaNet in which each number of a key decays by a factor of its own;
/// decay and gate come through as few numbers as a key has.
inline const MixerType kKimiDelta{
    .name = "kda",
    .title = "Kimi delta attention",
    .color = 4,
    .summary = "a state each of whose rows every token decays by a factor of its own, and corrects by the delta rule",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, {"expand_v", 1.0, {}, 1e-4, 1024}, kTaps, kNegativeEigenvalue},
    .cost = {.time = kState,
             .prefill = "2 B L d (2 n k + n v + n + 2 k) + 2 B L k n (k + v) + 6 B L n k v",
             .decode = "2 B d (2 n k + n v + n + 2 k) + 2 B k n (k + v) + 6 B n k v",
             .cache = "2 B n k v + 2 B p n (2 k + v)",
             .parameters = "d (2 n k + n v + n + 2 k) + k n (k + v) + c n (2 k + v) + n + n k + v"}};

}  // namespace headscope::mixers
