// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// A convolution over a few tokens between two gates. Families alone have it: no native configuration, no job.
inline const MixerType kShortConvolution{.name = "short_convolution",
                                         .summary = "a convolution of each channel over a few tokens, between gates",
                                         .has_matrix = false};

}  // namespace headscope::mixers
