// SPDX-License-Identifier: GPL-3.0-or-later
// Deconstructing Attention: distances of radar plots, score outliers, and the table of costs.

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/series.h"
#include "core/base/text/text.h"
#include "core/reproduce/claims/code.h"
#include "core/store/analysis/analysis_file.h"

namespace headscope::reproduce {
namespace {

/// Columns of a layer: H, C, HD, LF0 to LF3, S (means over heads; NaN without a matrix), whether it is Standard,
/// whether it has the subject's mixer, the largest |score|, and the share of pairs beyond 10. One matrix a seed.
enum Column : std::size_t { kSpokes = 8, kStandard = kSpokes, kOwn, kLargest, kAboveTen, kColumns };

/// Reads the first sequence, which comes first in every array.
void read_indicators(const std::filesystem::path& path, const std::string& subject, const std::string&,
                     Measured& measured) {
    const auto file = store::AnalysisFile::open(path);
    const auto& header = file->header();
    const auto heads = static_cast<std::size_t>(header.most_heads());
    const auto entropy = file->indicator("entropy").data, concentration = file->indicator("concentration").data,
               diversity = file->indicator("head_diversity").data, local = file->indicator("local_focus").data,
               sink = file->indicator("sink").data, lowest = file->score_statistic("minimum").data,
               highest = file->score_statistic("maximum").data, above = file->score_statistic("above").data;
    const std::size_t distances = header.local_distances.size();
    const auto length = static_cast<double>(header.sequences.front().ids.size());
    const double pairs = static_cast<double>(heads) * length * (length + 1) / 2;
    const std::string mixer = subject.substr(0, subject.find(' '));
    Matrix layers;
    for (std::size_t site = 0; site < header.sites.size(); ++site) {
        std::vector<double> row{finite_mean(entropy, site * heads, heads, 1),
                                finite_mean(concentration, site * heads, heads, 1), diversity[site]};
        for (std::size_t n = 0; n < 4; ++n)
            row.push_back(n < distances ? finite_mean(local, site * heads * distances + n, heads, distances)
                                        : std::nan(""));
        row.push_back(finite_mean(sink, site * heads, heads, 1));
        row.push_back(header.mixers[site] == "standard" ? 1 : 0);
        row.push_back(header.mixers[site] == mixer ? 1 : 0);
        double largest = std::nan(""), ten = header.sites[site].has_matrix ? 0 : std::nan("");
        for (std::size_t h = 0; h < heads && header.sites[site].has_matrix; ++h) {
            const std::size_t at = site * heads + h;
            largest = std::fmax(largest, std::max(std::abs(lowest[at]), std::abs(highest[at])));
            ten += above[3 * at] / pairs;
        }
        row.insert(row.end(), {largest, ten});
        layers.push_back(std::move(row));
    }
    measured.matrices[{subject, "layers"}].push_back(std::move(layers));
}

/// Units of the paper's radar plots: entropy, concentration and head diversity run from their least to their most.
std::array<double, kSpokes> scales_of(const Measured& measured) {
    std::array<double, kSpokes> scales;
    scales.fill(1);
    for (std::size_t i = 0; i < 3; ++i) {
        std::vector<double> values;
        for (const auto& [key, seeds] : measured.matrices)
            for (const Matrix& layers : key.second == "layers" ? seeds : std::vector<Matrix>())
                for (const auto& layer : layers)
                    if (!std::isnan(layer[i])) values.push_back(layer[i]);
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        if (!values.empty() && *high > *low) scales[i] = *high - *low;
    }
    return scales;
}

/// Mean |a - b| over layers that both have; only over those that are Standard in both if `standard`.
double radar_distance(const Matrix& a, const Matrix& b, const std::array<double, kSpokes>& scales, bool standard) {
    std::vector<double> differences;
    for (std::size_t layer = 0; layer < std::min(a.size(), b.size()); ++layer) {
        if (standard && !(a[layer][kStandard] > 0 && b[layer][kStandard] > 0)) continue;
        for (std::size_t i = 0; i < kSpokes; ++i)
            differences.push_back(std::abs(a[layer][i] - b[layer][i]) / scales[i]);
    }
    return finite_mean(differences);
}

void derive(const Plan&, Measured& measured) {
    const auto add = [&](const std::string& subject, const char* name, double value) {
        if (std::isfinite(value)) measured.add(subject, name, value, std::nan(""));
    };
    const auto scales = scales_of(measured);
    const auto base = measured.matrices.find({"standard", "layers"});
    for (const auto& [key, seeds] : measured.matrices) {
        if (key.second != "layers") continue;
        const std::string& subject = key.first;
        for (const Matrix& own : seeds) {
            std::vector<double> all, standard;  // to each Standard but itself
            for (std::size_t i = 0; base != measured.matrices.end() && i < base->second.size(); ++i) {
                if (&base->second[i] == &own) continue;
                all.push_back(radar_distance(own, base->second[i], scales, false));
                standard.push_back(radar_distance(own, base->second[i], scales, true));
            }
            add(subject, "distance", finite_mean(all));
            add(subject, "standard distance", finite_mean(standard));
            double largest = std::nan("");
            std::vector<double> above_ten;
            for (const auto& layer : own) {
                if (!(layer[kOwn] > 0) || !std::isfinite(layer[kLargest])) continue;
                largest = std::fmax(largest, layer[kLargest]);
                above_ten.push_back(layer[kAboveTen]);
            }
            add(subject, "largest score", largest);
            add(subject, "beyond 10", finite_mean(above_ten));
        }
        measured.set(subject, "models", static_cast<double>(seeds.size()));
    }
    // The last row of the table of layouts.
    measured.values[{"non_approximate standard", "perplexity@1"}] = measured.series("standard", "perplexity@1");
    const double own = measured.value("non_approximate uniform", "loss@1"),
                 mlp = measured.value("mlp uniform", "loss@1"), best = measured.value("standard", "loss@1");
    if (std::isfinite(own + mlp + best))
        measured.set("non_approximate uniform", "way to MLP", (own - best) / (mlp - best));
}

/// A row for each mixer and length of the table that `headscope cost --measure` wrote.
Rows rows(const std::string&, const Plan& plan, const Measured& measured) {
    Rows rows;
    for (const Model& model : plan.paper->models)
        if (const auto table = measured.matrices.find({model.name, "cost"}); table != measured.matrices.end())
            for (const auto& one : table->second.front()) {
                std::vector<std::string> cells{model.label, std::to_string(std::llround(one.front()))};
                for (std::size_t i = 1; i < one.size(); ++i)
                    cells.push_back(std::isfinite(one[i]) ? prefixed_text(one[i], 3) : "");
                rows.push_back(std::move(cells));
            }
    return rows;
}

}  // namespace

const PaperCode kDeconattn{"deconattn", read_indicators, nullptr, derive, rows};

}  // namespace headscope::reproduce
