// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headscope::store {
class AnalysisFile;
}

namespace headscope::analysis {

/// The short table that ends an analysis: one row a site, means over its heads and all sequences; values that do not
/// exist are left out of a mean, and NaN where there are none.
struct Summary {
    struct Row {
        std::int32_t layer = 0;
        std::string site;  ///< "0"; where a layer has several sites also "self", "cross" or the branch
        std::int32_t heads = 0;
        std::vector<double> values;  ///< one per column
    };
    std::vector<std::string> columns;  ///< names of indicators; local focus as local_focus_0, ...; score_maximum
    std::vector<Row> rows;
    std::vector<double> loss;  ///< mean next-token loss of each sequence in nats; NaN where there is none
};

Summary summarise(const store::AnalysisFile& file);

/// The table in aligned columns, one line a row, a heading first; "-" where there is no value.
std::string summary_text(const Summary& summary);

}  // namespace headscope::analysis
