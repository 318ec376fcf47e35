// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Tests if two models differ on a task: `--significance` of figures of evaluations.

#include <cstdint>
#include <span>
#include <string>

#include "core/figures/evaluation_groups.h"

namespace headscope::figures {

inline constexpr double kSignificant = 0.05;

/// One of two models that are compared on a task.
struct TestedModel {
    std::span<const double> each;               ///< one value a seed
    std::span<const EvaluationMember> members;  ///< whose items are paired
    std::string task;                           ///< of the items
    std::int64_t length = 0;
    std::string subset{};  ///< of the items; empty: all
};

/// Two-sided p of the difference of two models at their lengths: Welch's t over seeds where both have at least two,
/// else the paired t over the items that the files hold (Evaluation::items), an item's seeds averaged. NaN: neither is
/// possible, as of perplexities, which items have no value of.
double difference_p(const TestedModel& a, const TestedModel& b, const std::string& metric, std::int64_t shots);
/// The same of two groups; NaN where one lacks the value.
double difference_p(const EvaluationGroup& a, std::int64_t a_length, const EvaluationGroup& b, std::int64_t b_length,
                    const Measured& what);

}  // namespace headscope::figures
