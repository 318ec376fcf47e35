// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/reproduce/claims.h"
#include "core/reproduce/measured.h"
#include "core/reproduce/plan.h"

namespace headscope::reproduce {

/// Everything that a report says.
struct ReportInput {
    Plan plan;
    const Scores* scores = nullptr;
    std::vector<Indicators> analyses;
    std::vector<ReportFigure> figures;
    std::string cost_csv;               ///< of `headscope cost --measure`; may be empty
    std::vector<std::string> missing;   ///< trials that did not fit or failed, with the reason
    std::vector<std::string> commands;  ///< how to do it again by hand
    std::string data;                   ///< "the King James Bible, 1.2 million tokens ..."
    std::string machine, program_version;
    std::string launch;            ///< words before the training program: "mpirun -n 2"; empty: none
    double seconds = 0;            ///< that it took, over all sessions
    double tokens_per_second = 0;  ///< of Standard's training
};

/// Markdown. Says what was measured, and of each claim whether it held.
std::string report_markdown(const ReportInput& input);

}  // namespace headscope::reproduce
