// SPDX-License-Identifier: GPL-3.0-or-later
// Distributions of the scores before the normaliser, as in "Deconstructing Attention", Fig. 2 and 6: a ridge a layer,
// or a head with --layer, models side by side, on a symmetric-log axis that shows outliers.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLinear = 8.0;  ///< the histogram's bins are of equal width up to here, and of equal ratio beyond
constexpr std::array<const char*, 3> kAbove{"|s| > 10", "> 100", "> 1000"};

/// One row of the figure: a layer (all heads together) or a head.
struct Row {
    std::int64_t layer = 0, head = -1;
    std::string name;
    std::vector<double> counts;
    double minimum = kNone, maximum = kNone, mean = kNone;
    std::array<double, 3> above{0, 0, 0};
    double total = 0;
    bool undefined = false;  ///< some scores are infinite or NaN
};

struct Model {
    std::string name;
    std::vector<double> edges;
    std::int64_t row_step = 1;
    std::vector<Row> rows;
};

class Reader {
public:
    Reader(const store::AnalysisFile& file, std::int64_t s)
        : file_(file),
          s_(s),
          minimum_(file.score_statistic("minimum")),
          maximum_(file.score_statistic("maximum")),
          mean_(file.score_statistic("mean")),
          above_(file.score_statistic("above")),
          edges_(file.histogram_edges()) {}

    Row row(std::int64_t site, std::int64_t first, std::int64_t last) const {
        Row row;
        row.layer = file_.header().sites[static_cast<std::size_t>(site)].layer;
        const auto histogram = file_.histogram(s_, site);
        const auto bins = histogram.shape[1];
        row.counts.assign(static_cast<std::size_t>(bins), 0.0);
        double sum = 0;
        int heads = 0;
        const auto& about = file_.header().sites[static_cast<std::size_t>(site)];
        const bool measured = file_.header().measured(about) && file_.site_done(s_, site);
        const auto widen = [&](double low, double high) {
            row.minimum = std::isnan(row.minimum) ? low : std::min(row.minimum, low);
            row.maximum = std::isnan(row.maximum) ? high : std::max(row.maximum, high);
        };
        for (std::int64_t h = first; h < last; ++h) {
            for (std::int64_t b = 0; b < bins; ++b) {
                const double count = histogram.data[static_cast<std::size_t>(h * bins + b)];
                if (count > 0) row.counts[static_cast<std::size_t>(b)] += count;
            }
            const auto at = static_cast<std::size_t>((s_ * minimum_.shape[1] + site) * minimum_.shape[2] + h);
            const double low = minimum_.data[at], high = maximum_.data[at];
            for (std::size_t k = 0; k < 3; ++k) row.above[k] += std::max(0.0, above_.data[at * 3 + k]);
            if (std::isfinite(low) && std::isfinite(high) && std::isfinite(mean_.data[at]) && low <= high) {
                widen(low, high);
                sum += mean_.data[at];
                ++heads;
            } else if (measured) {
                // Where the extremes say nothing (NaN scores leave the minimum above the maximum), the bins do.
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
        return row;
    }

private:
    const store::AnalysisFile& file_;
    std::int64_t s_;
    store::Values minimum_, maximum_, mean_, above_;
    std::vector<double> edges_;
};

Model read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto s = chosen_sequence(file, options);
    Model model{name, file.histogram_edges(), file.histogram_row_step(), {}};
    const Reader reader(file, s);
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
            // One layer: heads tell rows apart. One head of all layers: layers do.
            const bool by_head = options.layer.has_value() && sites.size() == 1;
            const bool by_layer = !options.layer.has_value();
            model.rows.back().name = by_head    ? std::to_string(h)
                                     : by_layer ? site_label(file, site)
                                                : site_label(file, site) + "." + std::to_string(h);
        }
    }
    return model;
}

double place(double score) {
    return scaled(ScaleKind::symmetric_log, score, kLinear);
}

/// Finite edges: the outermost bins end at the extremes.
std::vector<double> finite_edges(const std::vector<double>& edges, const Row& row) {
    std::vector<double> finite = edges;
    if (finite.size() < 2) return finite;
    if (std::isinf(finite.front()))
        finite.front() = std::min(finite[1], std::isnan(row.minimum) ? finite[1] : row.minimum);
    auto& last = finite.back();
    const double before = finite[finite.size() - 2];
    if (std::isinf(last)) last = std::max(before, std::isnan(row.maximum) ? before : row.maximum);
    return finite;
}

Ridge ridge(const Row& row, const std::vector<double>& edges, int colour) {
    Ridge drawn{row.name, finite_edges(edges, row), {}, row.minimum, row.maximum, row.mean, {}, {}, colour};
    const double least_width = std::log(10.0) / 16;  // of the bins beyond +-kLinear
    for (std::size_t b = 0; b < row.counts.size(); ++b) {
        // The height is of the whole bin, or an extreme just past an edge would make a tall spike of a few scores;
        // only what is drawn is cut to the extremes.
        double left = drawn.edges[b], right = drawn.edges[b + 1];
        if (!std::isnan(row.minimum)) {
            left = std::clamp(left, row.minimum, std::max(row.minimum, row.maximum));
            right = std::clamp(right, row.minimum, std::max(row.minimum, row.maximum));
        }
        double width = place(drawn.edges[b + 1]) - place(drawn.edges[b]);
        const bool outermost = std::isinf(edges[b]) || std::isinf(edges[b + 1]);
        if (outermost) width = std::max(width, least_width);
        double share = row.total > 0 ? row.counts[b] / row.total : 0;
        if (row.maximum > row.minimum && !(right > left)) share = 0;  // no score is out there
        drawn.heights.push_back(width > 0 ? share / width : 0);
        if (share > 0 && right > left) {
            drawn.edges[b] = left;
            drawn.edges[b + 1] = right;
        }
    }
    for (const double count : row.above) {
        drawn.notes.push_back(row.total > 0 ? short_count(count) : "–");
        drawn.strong.push_back(count > 0);
    }
    // Ten is nothing unusual for a score.
    drawn.strong[0] = false;
    return drawn;
}

Table logits_table(const std::vector<Model>& models) {
    std::vector<std::string> model, site;
    std::vector<std::int64_t> layer, head;
    std::vector<double> low, high, count, minimum, maximum, mean;
    std::array<std::vector<double>, 3> above;
    for (const auto& m : models) {
        for (const auto& row : m.rows) {
            for (std::size_t b = 0; b < row.counts.size(); ++b) {
                model.push_back(m.name);
                layer.push_back(row.layer);
                site.push_back(row.name);
                head.push_back(row.head);
                low.push_back(m.edges[b]);
                high.push_back(m.edges[b + 1]);
                count.push_back(row.counts[b]);
                minimum.push_back(row.minimum);
                maximum.push_back(row.maximum);
                mean.push_back(row.mean);
                for (std::size_t k = 0; k < 3; ++k) above[k].push_back(row.above[k]);
            }
        }
    }
    return {{{"model", std::move(model)},
             {"layer", std::move(layer)},
             {"head", std::move(head)},
             {"row", std::move(site)},
             {"bin_low", std::move(low)},
             {"bin_high", std::move(high)},
             {"count", std::move(count)},
             {"minimum", std::move(minimum)},
             {"maximum", std::move(maximum)},
             {"mean", std::move(mean)},
             {"above_10", std::move(above[0])},
             {"above_100", std::move(above[1])},
             {"above_1000", std::move(above[2])}}};
}

std::string title(const FigureOptions& options) {
    std::string text = "Attention scores before the normaliser";
    if (options.layer) text += ", layer " + std::to_string(*options.layer);
    if (options.head) text += ", head " + std::to_string(*options.head);
    return text;
}

/// One height for all ridges, so that areas compare; each its own where that would flatten some.
double common_height(const std::vector<Panel>& panels) {
    constexpr double kMostUnlike = 12;
    double highest = 0, lowest = std::numeric_limits<double>::infinity();
    for (const auto& panel : panels) {
        for (const auto& one : std::get<Ridges>(panel.content).ridges) {
            double peak = 0;
            for (const double height : one.heights) peak = std::max(peak, height);
            if (!(peak > 0)) continue;
            highest = std::max(highest, peak);
            lowest = std::min(lowest, peak);
        }
    }
    return highest > kMostUnlike * lowest ? 0.0 : highest;
}

}  // namespace

FigureData logits(Files files, const FigureOptions& options) {
    const auto names = file_labels(files);
    std::vector<Model> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read(*files[f], names[f], options));

    FigureData figure;
    figure.title = title(options);
    std::size_t most = 0;
    double low = 0, high = 0;
    for (std::size_t m = 0; m < models.size(); ++m) {
        Panel panel;
        if (models.size() > 1) panel.title = models[m].name;
        panel.x.label = "score";
        panel.x.scale = ScaleKind::symmetric_log;
        panel.x.linear_range = kLinear;
        panel.y.label = options.layer && chosen_sites(*files[m], options).size() == 1 ? "head" : "layer";
        Ridges ridges;
        ridges.note_titles.assign(kAbove.begin(), kAbove.end());
        for (const auto& row : models[m].rows) {
            ridges.ridges.push_back(ridge(row, models[m].edges, static_cast<int>(m)));
            if (std::isnan(row.minimum)) continue;
            low = std::min(low, row.minimum);
            high = std::max(high, row.maximum);
        }
        most = std::max(most, ridges.ridges.size());
        panel.content = std::move(ridges);
        figure.panels.push_back(std::move(panel));
    }
    const double common = common_height(figure.panels);
    for (auto& panel : figure.panels) {
        std::get<Ridges>(panel.content).highest = common;
        if (high > low) panel.x.range = std::pair(low * 1.05, high * 1.05);
    }
    figure.columns = static_cast<std::int64_t>(models.size());
    figure.reflow = true;
    figure.narrowest_mm = 34;
    const auto rows = static_cast<double>(std::max<std::size_t>(1, most));
    figure.panel_height_mm = 8 + rows * std::clamp(110 / rows, 3.0, 11.0);
    figure.notes = source_notes(files, options);
    figure.notes.push_back(
        std::string("Symmetric-log axis, linear within ±8; heights are shares per unit of the drawn axis") +
        (common > 0 ? ", so that equal areas are equal shares." : "; each row is scaled to its own peak.") +
        " Line: minimum to maximum; dot: mean. At the right: how many scores are so large.");
    for (const auto& model : models) {
        std::vector<std::string> undefined;
        for (const auto& row : model.rows) {
            if (row.undefined) undefined.push_back(row.name);
        }
        if (undefined.empty()) continue;
        const bool heads =
            options.layer && figure.panels[static_cast<std::size_t>(&model - models.data())].y.label == "head";
        std::string note = (models.size() > 1 ? model.name + ": infinite" : std::string("Infinite")) +
                           " or undefined scores in " + (heads ? "head " : "layer ");
        constexpr std::size_t kNamed = 12;
        for (std::size_t i = 0; i < std::min(kNamed, undefined.size()); ++i) note += (i > 0 ? ", " : "") + undefined[i];
        if (undefined.size() > kNamed) note += " and " + std::to_string(undefined.size() - kNamed) + " more";
        figure.notes.push_back(note + "; only finite ones are drawn.");
    }
    for (const auto& model : models) {
        if (model.row_step <= 1) continue;
        figure.notes.push_back((models.size() > 1 ? model.name + ": s" : std::string("S")) +
                               "hapes are from one query row in " + std::to_string(model.row_step) +
                               "; extremes, means and outlier counts are of all.");
    }
    figure.table = [models = std::move(models)] { return logits_table(models); };
    return figure;
}

}  // namespace headscope::figures
