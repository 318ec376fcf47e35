// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/site_name.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::analysis {
namespace {

/// Mean of what exists.
class Mean {
public:
    void add(double value) {
        if (std::isnan(value)) return;
        sum_ += value;
        ++count_;
    }
    double value() const { return count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sum_ / count_; }

private:
    double sum_ = 0;
    double count_ = 0;
};

std::string cell(double value) {
    if (std::isnan(value)) return "-";
    char buffer[32];
    const double size = std::abs(value);
    std::snprintf(buffer, sizeof buffer,
                  size != 0 && (size < 1e-3 || size >= 1e5) ? "%.2e"
                  : size < 10                               ? "%.4f"
                                                            : "%.2f",
                  value);
    return buffer;
}

}  // namespace

Summary summarise(const store::AnalysisFile& file) {
    const store::AnalysisHeader& header = file.header();
    const std::size_t sequences = header.sequences.size(), sites = header.sites.size();
    Summary summary;
    for (std::size_t i = 0; i < sites; ++i) {
        summary.rows.push_back(
            {header.sites[i].layer, site_label(header.sites, static_cast<std::int64_t>(i)), header.sites[i].heads, {}});
    }
    // `values` is [sequence, site, cells]; column `offset` of each row of `columns` cells.
    const auto add = [&](const std::string& name, const store::Values& values, std::size_t columns,
                         std::size_t offset) {
        summary.columns.push_back(name);
        const std::size_t cells = sequences * sites == 0 ? 0 : values.data.size() / (sequences * sites);
        for (std::size_t i = 0; i < sites; ++i) {
            Mean mean;
            for (std::size_t s = 0; s < sequences; ++s) {
                for (std::size_t c = offset; c < cells; c += columns)
                    mean.add(values.data[(s * sites + i) * cells + c]);
            }
            summary.rows[i].values.push_back(mean.value());
        }
    };
    for (const char* name : {"entropy_row_mean", "concentration", "head_diversity", "sink"}) {
        add(name, file.indicator(name), 1, 0);
    }
    const auto focus = file.indicator("local_focus");
    for (std::size_t n = 0; n < header.local_distances.size(); ++n) {
        add("local_focus_" + std::to_string(header.local_distances[n]), focus, header.local_distances.size(), n);
    }
    add("mean_distance", file.indicator("mean_distance"), 1, 0);
    if (header.type_chunk > 0) add("softmax_fraction", file.indicator("softmax_fraction"), 1, 0);
    for (const char* name : {"a_to_a", "a_to_b", "b_to_a", "b_to_b"}) {
        if (header.pairs()) add(name, file.indicator(name), 1, 0);
    }
    add("score_maximum", file.score_statistic("maximum"), 1, 0);
    for (std::size_t s = 0; s < sequences; ++s) {
        Mean mean;
        for (const double value : file.loss(static_cast<std::int64_t>(s)).data) mean.add(value);
        summary.loss.push_back(mean.value());
    }
    return summary;
}

std::string summary_text(const Summary& summary) {
    std::vector<std::vector<std::string>> lines(1);
    lines[0] = {"layer"};
    lines[0].insert(lines[0].end(), summary.columns.begin(), summary.columns.end());
    for (const Summary::Row& row : summary.rows) {
        lines.push_back({row.site});
        for (const double value : row.values) lines.back().push_back(cell(value));
    }
    std::vector<std::size_t> widths(lines[0].size(), 0);
    for (const auto& line : lines) {
        for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
    }
    std::string text;
    for (const auto& line : lines) {
        for (std::size_t c = 0; c < line.size(); ++c) {
            text += (c > 0 ? "  " : "") + std::string(widths[c] - line[c].size(), ' ') + line[c];
        }
        text += '\n';
    }
    return text;
}

}  // namespace headscope::analysis
