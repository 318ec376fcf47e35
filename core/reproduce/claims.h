// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What the paper claims, and whether it held here: each claim with a criterion that was fixed before anything ran, what
// the paper says in numbers, and what was found.

#include <string>
#include <vector>

#include "core/reproduce/measured.h"
#include "core/reproduce/plan.h"

namespace headscope::reproduce {

enum class Verdict {
    held,
    partly,
    failed,
    undecided,  ///< the models learned too little to tell
    not_measured
};
std::string verdict_text(Verdict verdict);

struct Claim {
    std::string title;      ///< the claim
    std::string paper;      ///< the paper's numbers
    std::string criterion;  ///< when we say that it held
    std::string found;      ///< our numbers
    Verdict verdict = Verdict::not_measured;
};

/// Whether Standard learned to use its context at all: a perplexity at least 3 % below uniform MLP's, which sees none.
/// Where it did not, mixers cannot be told apart, and whatever is a claim about them is undecided.
bool learned(const Plan& plan, const Scores& scores);

/// `analyses`: of as many models as were analysed.
std::vector<Claim> judge(const Plan& plan, const Scores& scores, const std::vector<Indicators>& analyses);

/// "12.3", "12.3 ± 0.4": three or four significant digits.
std::string number_text(double value);
std::string spread_text(const Spread& spread);

}  // namespace headscope::reproduce
