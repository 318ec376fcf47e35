// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStandard{.name = "standard",
                                 .summary = "softmax attention, with grouped heads, windows and rotary positions",
                                 .in_transformers = true,
                                 .in_encoders = true,
                                 .in_cross = true,
                                 .options = {{"normaliser", "softmax", {"softmax", "sparsemax"}}},
                                 .cost = {"Standard", kQuadratic, kMatrices, kMatricesOfOne, kKept, kKeysValues}};

}  // namespace headscope::mixers
