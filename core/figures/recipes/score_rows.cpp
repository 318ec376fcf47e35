// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/score_rows.h"

#include <algorithm>
#include <cmath>

#include "core/figures/head_weights.h"

namespace headscope::figures {
namespace {

/// Adds scores of another sequence to a row of the same heads.
void merge(ScoreRow& row, const ScoreRow& other) {
    for (std::size_t b = 0; b < row.counts.size(); ++b) row.counts[b] += other.counts[b];
    for (std::size_t k = 0; k < row.above.size(); ++k) row.above[k] += other.above[k];
    // fmin and fmax pass over what does not exist.
    row.minimum = std::fmin(row.minimum, other.minimum);
    row.maximum = std::fmax(row.maximum, other.maximum);
    if (std::isnan(row.mean) || std::isnan(other.mean))
        row.mean = row.total > 0 ? row.mean : other.mean;
    else if (row.total + other.total > 0)
        row.mean = (row.mean * row.total + other.mean * other.total) / (row.total + other.total);
    row.total += other.total;
    row.undefined |= other.undefined;
    if (row.after && other.after) row.after->add(*other.after);
}

class Reader {
public:
    Reader(const store::AnalysisFile& file, std::vector<std::int64_t> sequences, bool after)
        : file_(file),
          sequences_(std::move(sequences)),
          after_(after),
          minimum_(file.score_statistic("minimum")),
          maximum_(file.score_statistic("maximum")),
          mean_(file.score_statistic("mean")),
          above_(file.score_statistic("above")),
          edges_(file.histogram_edges()) {}

    ScoreRow row(std::int64_t site, std::int64_t first, std::int64_t last) const {
        ScoreRow row = of_sequence(sequences_.front(), site, first, last);
        std::vector<double> means{row.mean};
        for (std::size_t i = 1; i < sequences_.size(); ++i) {
            const ScoreRow other = of_sequence(sequences_[i], site, first, last);
            means.push_back(other.mean);
            merge(row, other);
        }
        row.deviation = moments(means).deviation;
        return row;
    }

private:
    ScoreRow of_sequence(std::int64_t s, std::int64_t site, std::int64_t first, std::int64_t last) const {
        ScoreRow row;
        row.site = site;
        row.layer = file_.header().sites[static_cast<std::size_t>(site)].layer;
        const auto histogram = file_.histogram(s, site);
        const auto bins = histogram.shape[1];
        row.counts.assign(static_cast<std::size_t>(bins), 0.0);
        double sum = 0;
        int heads = 0;
        const auto& about = file_.header().sites[static_cast<std::size_t>(site)];
        const bool measured = file_.header().measured(about) && file_.site_done(s, site);
        const auto widen = [&](double low, double high) {
            row.minimum = std::isnan(row.minimum) ? low : std::min(row.minimum, low);
            row.maximum = std::isnan(row.maximum) ? high : std::max(row.maximum, high);
        };
        for (std::int64_t h = first; h < last; ++h) {
            for (std::int64_t b = 0; b < bins; ++b) {
                const double count = histogram.data[static_cast<std::size_t>(h * bins + b)];
                if (count > 0) row.counts[static_cast<std::size_t>(b)] += count;
            }
            const auto at = static_cast<std::size_t>((s * minimum_.shape[1] + site) * minimum_.shape[2] + h);
            const double low = minimum_.data[at], high = maximum_.data[at];
            for (std::size_t k = 0; k < 3; ++k) row.above[k] += std::max(0.0, above_.data[at * 3 + k]);
            if (std::isfinite(low) && std::isfinite(high) && std::isfinite(mean_.data[at]) && low <= high) {
                widen(low, high);
                sum += mean_.data[at];
                ++heads;
            } else if (measured) {
                // If the extremes are undefined (NaN scores leave the minimum above the maximum), use the bins.
                row.undefined = true;
                for (std::int64_t b = 1; b + 1 < bins; ++b) {
                    if (!(histogram.data[static_cast<std::size_t>(h * bins + b)] > 0)) continue;
                    widen(edges_[static_cast<std::size_t>(b)], edges_[static_cast<std::size_t>(b) + 1]);
                }
                if (std::isfinite(low) && low <= high) widen(low, low);
                if (std::isfinite(high) && low <= high) widen(high, high);
            }
        }
        // Every head of a site has the same pairs, so the mean of means is the mean.
        if (heads > 0 && !row.undefined) row.mean = sum / heads;
        for (const double count : row.counts) row.total += count;
        if (after_) {
            const auto map = recorded_map(file_, s, site, "logits");
            row.after.emplace();
            for (std::int64_t h = first; h < last; ++h) row.after->add(weight_spread(map, h));
        }
        return row;
    }

    const store::AnalysisFile& file_;
    std::vector<std::int64_t> sequences_;
    bool after_;
    store::Values minimum_, maximum_, mean_, above_;
    std::vector<double> edges_;
};

}  // namespace

ScoreModel read_scores(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    ScoreModel model{name, file.histogram_edges(), file.histogram_row_step(), {}};
    const Reader reader(file, chosen_sequences(file, options), options.stage != Stage::before);
    const auto sites = chosen_sites(file, options);
    for (const auto site : sites) {
        check_head(file, site, options);
        const std::int64_t heads = file.header().sites[static_cast<std::size_t>(site)].heads;
        if (!options.layer && !options.head) {
            model.rows.push_back(reader.row(site, 0, heads));
            model.rows.back().name = site_label(file, site);
            continue;
        }
        for (std::int64_t h = 0; h < heads; ++h) {
            if (options.head && *options.head != h) continue;
            model.rows.push_back(reader.row(site, h, h + 1));
            model.rows.back().head = h;
            // One layer: rows differ by head. One head of all layers: by layer.
            const bool by_head = options.layer.has_value() && sites.size() == 1;
            const bool by_layer = !options.layer.has_value();
            model.rows.back().name = by_head    ? std::to_string(h)
                                     : by_layer ? site_label(file, site)
                                                : site_label(file, site) + "." + std::to_string(h);
        }
    }
    return model;
}

}  // namespace headscope::figures
