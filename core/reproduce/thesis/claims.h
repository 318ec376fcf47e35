// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What chapters 2 and 3 of Xue's thesis claim, from what was measured (core/reproduce/claim.h).

#include <vector>

#include "core/reproduce/claim.h"
#include "core/reproduce/thesis/measured.h"
#include "core/reproduce/thesis/plan.h"

namespace headscope::reproduce::thesis {

/// Whether the plan has tokens enough (a million a run) for models of this size to use their context; else what is
/// claimed of their scores is undecided.
bool learned(const Plan& plan);

std::vector<Claim> judge(const Plan& plan, const Measured& measured);
/// Of either chapter, without regard to how much was learned.
std::vector<Claim> judge_heads(const Measured& measured);
std::vector<Claim> judge_hashes(const Measured& measured);

struct ReportInput : ReportFrame {
    Plan plan;
    Measured measured;
};
/// Markdown: our numbers beside the thesis's, and of each claim whether it held.
std::string report_markdown(const ReportInput& input);

}  // namespace headscope::reproduce::thesis
