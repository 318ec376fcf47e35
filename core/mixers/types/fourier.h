// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// FNet (Lee-Thorp et al., arXiv 2105.03824). It has no matrix product, which is all that costs count.
inline const MixerType kFourier{.name = "fnet",
                                .title = "FNet",
                                .color = 2,
                                .summary = "no attention: a Fourier transform over numbers and tokens, in encoders",
                                .has_matrix = false,
                                .in_decoders = false,
                                .in_encoders = true,
                                .cost = {.time = "B L d l", .prefill = "0", .parameters = "0"}};

}  // namespace headscope::mixers
