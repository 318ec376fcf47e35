// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/gated_deltanet.h"

namespace headscope::mixers {

/// Mamba2 (Dao and Gu, arXiv 2405.21060). `num_heads` 0: twice as many as the model's attention has, which makes twice
/// the hidden size; `head_dim` 0: as large. A group of heads shares what it writes under and reads by.
inline const MixerType kMamba2{.name = "mamba2",
                               .summary = "a state that every token decays by the step that it writes with",
                               .has_matrix = false,
                               .options = {kOwnHeads,
                                           kOwnKeySize,
                                           {"state_size", std::int64_t{128}, {}, 1, 65536},
                                           {"num_groups", std::int64_t{1}, {}, 1, 65536},
                                           kTaps}};

}  // namespace headscope::mixers
