// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tests whether two models differ on a task: `--significance` of figures of evaluations.

#include <cstdint>

#include "core/figures/recipes/evaluation_groups.h"

namespace headscope::figures {

inline constexpr double kSignificant = 0.05;

/// Two-sided p of the difference of two models at their lengths: Welch's t over seeds where both have at least two,
/// else the paired t over the items that the files hold (Evaluation::items), an item's seeds averaged. NaN: neither is
/// possible. Items hold whether an answer is right, so only acc and contains have a paired test.
double difference_p(const EvaluationGroup& a, std::int64_t a_length, const EvaluationGroup& b, std::int64_t b_length,
                    const Measured& what);

}  // namespace headscope::figures
