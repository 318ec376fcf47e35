// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

inline const MixerType kNonApproximate{
    .name = "non_approximate",
    .title = "Non-approximate",
    .color = 2,
    .summary = "one score per key for all queries, in linear time",
    .in_deconstructing = true,
    .cost = {kLinear, kProjections, kProjectionsOfOne, "(8 B L d + 4 B L h) / t", "2 B d + 4 B h"}};

}  // namespace headscope::mixers
