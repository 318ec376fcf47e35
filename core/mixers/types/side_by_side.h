// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Softmax attention and Mamba2 on one input. Families alone have it: no native configuration, no job.
inline const MixerType kSideBySide{.name = "attention_mamba2",
                                   .summary = "softmax attention and Mamba2 side by side, whose outputs are added"};

}  // namespace headscope::mixers
