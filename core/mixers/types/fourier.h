// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// FNet (Lee-Thorp et al., arXiv 2105.03824).
inline const MixerType kFourier{.name = "fnet",
                                .summary = "no attention: a Fourier transform over numbers and tokens, in encoders",
                                .has_matrix = false,
                                .in_decoders = false,
                                .in_encoders = true};

}  // namespace headscope::mixers
