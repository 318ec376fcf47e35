// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kMlp{.name = "mlp",
                            .title = "MLP",
                            .color = 6,
                            .summary = "no token mixing: a gated feed-forward of each token",
                            .has_matrix = false,
                            .in_encoders = true,
                            .in_deconstructing = true,
                            .cost = {kLinear, kProjections, kProjectionsOfOne, "8 B L d / t", "0"}};

}  // namespace headscope::mixers
