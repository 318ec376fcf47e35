// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What "Deconstructing Attention" claims, and whether it held here (claim.h).

#include <string>
#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/measured.h"
#include "core/reproduce/plan.h"

namespace headscope::reproduce {

/// Whether Standard learned to use its context at all: a perplexity at least 3 % below uniform MLP's, which sees none.
/// Where it did not, mixers cannot be told apart, and whatever is a claim about them is undecided.
bool learned(const Plan& plan, const Scores& scores);

/// `analyses`: of as many models as were analysed.
std::vector<Claim> judge(const Plan& plan, const Scores& scores, const std::vector<Indicators>& analyses);

}  // namespace headscope::reproduce
