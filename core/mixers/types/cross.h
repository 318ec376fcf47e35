// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Of decoders that have an encoder; no choice for a layer.
inline const MixerType kCross{.name = "cross", .summary = "attention to the encoder's output"};

}  // namespace headscope::mixers
