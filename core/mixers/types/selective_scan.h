// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// Mamba (Gu and Dao, arXiv 2312.00752). Families alone have it: no native configuration, no job.
inline const MixerType kSelectiveScan{
    .name = "mamba", .summary = "a state of each channel, each number of which decays by itself", .has_matrix = false};

}  // namespace headscope::mixers
