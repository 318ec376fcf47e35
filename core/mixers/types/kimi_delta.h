// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Kimi delta attention (arXiv 2510.26692): Gated DeltaNet in which each number of a key decays by a factor of its own;
/// decay and gate come through as few numbers as a key has.
inline const MixerType kKimiDelta{
    .name = "kda",
    .summary = "a state each of whose rows every token decays by a factor of its own, and corrects by the delta rule",
    .has_matrix = false,
    .options = {kOwnHeads, kOwnKeySize, {"expand_v", 1.0, {}, 1e-4, 1024}, kTaps, kNegativeEigenvalue}};

}  // namespace headscope::mixers
