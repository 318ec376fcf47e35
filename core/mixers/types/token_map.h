// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// The baseline "Linear" of Xue and Aletras (arXiv 2310.07911): learned weights of each pair of positions. Its
/// cost is that of a map for L positions.
inline const MixerType kTokenMap{
    .name = "linear",
    .title = "Linear",
    .color = 5,
    .summary = "no attention: a learned matrix over positions and a map, in encoders",
    .has_matrix = false,
    .in_decoders = false,
    .in_encoders = true,
    .cost = {.time = kQuadratic, .prefill = "2 B L^2 d + 2 B L d^2", .parameters = "d^2 + L^2"}};

}  // namespace headscope::mixers
