// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mixers/types/type.h"

namespace headscope::mixers {

/// The Taylor weights t(s) = 1 + s + s^2 / 2. second_order "diagonal": sum over the head's numbers of
/// (q_c k_c)^2 / (2 d_h), Appendix I. normalisation "per_order": a denominator for each order, rows sum to 3 (Eq. 14).
inline const MixerType kApproximate{
    .name = "approximate",
    .title = "Approximate",
    .color = 1,
    .summary = "a Taylor series of the second order instead of the exponential, in linear time",
    .in_deconstructing = true,
    .options = {{"second_order", "full", {"full", "diagonal"}}, {"normalisation", "joint", {"joint", "per_order"}}},
    .cost = {kLinear, "14 B L d^2", "10 B d^2", "11 B L d / t + 3 B d^2 / (h t)", "6 B d + 4 B d^2 / h"}};

}  // namespace headscope::mixers
