// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#include "kernels/score_rule.h"

namespace headscope::kernels {

/// The rule of head `h` (of `heads`) of sequence `b` for itself: batch 1, one head.
ScoreRule rule_of_head(const ScoreRule& rule, std::int64_t b, std::int64_t h, std::int64_t heads);

}  // namespace headscope::kernels
