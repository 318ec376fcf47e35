// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStandard{.name = "standard",
                                 .title = "Standard",
                                 .color = 0,
                                 .summary = "softmax attention, with grouped heads, windows and rotary positions",
                                 .in_transformers = true,
                                 .in_encoders = true,
                                 .in_cross = true,
                                 .in_deconstructing = true,
                                 .options = {{"normaliser", "softmax", {"softmax", "sparsemax"}}},
                                 .cost = {kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
