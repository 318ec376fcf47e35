// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kStandard{.name = "standard",
                                 .summary = "softmax attention, with grouped heads, windows and rotary positions",
                                 .in_transformers = true,
                                 .options = {{"normaliser", "softmax", {"softmax", "sparsemax"}}},
                                 .cost = {"Standard", kQuadratic, "4 B L^2 d + 6 B L d^2", "6 B d^2 + 4 B L d",
                                          "(8 B L d + 2 B L^2 h) / t", "4 B L d"}};

}  // namespace headscope::mixers
