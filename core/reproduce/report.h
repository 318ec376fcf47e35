// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/reproduce/claims.h"

namespace headscope::reproduce {

/// A table of the report that no claim reads.
struct ReportTable {
    std::string title;
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
    std::string text;  ///< below the title; empty: none
};

struct ReportInput {
    Plan plan;
    Measured measured;  ///< without derived numbers
    std::vector<ReportFigure> figures;
    std::vector<std::string> missing;  ///< trials and figures that did not fit or failed, with the reason
    std::string machine, program_version;
    std::string launch;                 ///< words before the training program: "mpirun -n 2"; empty: none
    double seconds = 0;                 ///< that it took, over all sessions
    double tokens_per_second = 0;       ///< of the first trial's training; 0: not known
    std::vector<ReportTable> tables{};  ///< of data sets
};

/// Markdown by the paper's [report]: our numbers next to the paper's, and whether each claim held.
std::string report_markdown(const ReportInput& input);

}  // namespace headscope::reproduce
