// SPDX-License-Identifier: GPL-3.0-or-later
// Distributions of the scores before the normalizer, as in "Deconstructing Attention", Fig. 2 and 6: a ridge a layer,
// or a head with --layer, models side by side, on a symmetric-log axis that shows outliers.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/figures/recipe.h"
#include "core/figures/recipes/score_rows.h"
#include "core/figures/weight_spread.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLinear = 8.0;  ///< the histogram's bins are of equal width up to here, and of equal ratio beyond
constexpr std::array<const char*, 3> kAbove{"|s| > 10", "> 100", "> 1000"};

double place(double score) {
    return scaled(ScaleKind::symmetric_log, score, kLinear);
}

/// Finite edges: the outermost bins end at the extremes.
std::vector<double> finite_edges(const std::vector<double>& edges, const ScoreRow& row) {
    std::vector<double> finite = edges;
    if (finite.size() < 2) return finite;
    if (std::isinf(finite.front()))
        finite.front() = std::min(finite[1], std::isnan(row.minimum) ? finite[1] : row.minimum);
    auto& last = finite.back();
    const double before = finite[finite.size() - 2];
    if (std::isinf(last)) last = std::max(before, std::isnan(row.maximum) ? before : row.maximum);
    return finite;
}

Subject subject_of(const ScoreRow& row) {
    Subject subject = of_site(row.site);
    if (row.head >= 0) subject.head = row.head;
    return subject;
}

Ridge ridge(const ScoreRow& row, const std::vector<double>& edges, int colour) {
    Ridge drawn{row.name, finite_edges(edges, row), {}, row.minimum, row.maximum, row.mean, {}, {}, colour};
    drawn.deviation = row.deviation;
    drawn.subject = subject_of(row);
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

/// The same row after the normalizer: heights are shares per decade.
Ridge weight_ridge(const ScoreRow& row, int colour) {
    const WeightSpread& spread = *row.after;
    const bool some = spread.maximum >= spread.minimum;
    Ridge drawn{row.name, {}, {}, some ? spread.minimum : kNone, some ? spread.maximum : kNone, kNone, {}, {}, colour};
    drawn.subject = subject_of(row);
    if (spread.pairs > 0 && some) drawn.mean = std::max(spread.sum / spread.pairs, WeightSpread::edge(0));
    for (std::size_t b = 0; b <= spread.counts.size(); ++b) drawn.edges.push_back(WeightSpread::edge(b));
    for (const double count : spread.counts)
        drawn.heights.push_back(spread.pairs > 0 ? count / spread.pairs * WeightSpread::kBinsPerDecade : 0);
    for (const double count : spread.above) {
        drawn.notes.push_back(spread.queries > 0 ? short_number(count / spread.queries, 2) : "–");
        drawn.strong.push_back(false);
    }
    return drawn;
}

/// Bins of the weights, in the columns of scores_table(); their own columns lack what scores have, and the other way.
void add_weight_rows(Table& table, const std::vector<ScoreModel>& models) {
    const auto append = [&](std::size_t column, auto value) {
        std::get<std::vector<decltype(value)>>(table.columns[column].values).push_back(value);
    };
    for (const auto& m : models) {
        for (const auto& row : m.rows) {
            for (std::size_t b = 0; b < row.after->counts.size(); ++b) {
                std::size_t c = 0;
                append(c++, std::string("weight"));
                append(c++, m.name);
                append(c++, row.layer);
                append(c++, row.head);
                append(c++, row.name);
                append(c++, WeightSpread::edge(b));
                append(c++, WeightSpread::edge(b + 1));
                append(c++, row.after->counts[b]);
                append(c++, row.after->minimum);
                append(c++, row.after->maximum);
                append(c++, row.after->pairs > 0 ? row.after->sum / row.after->pairs : kNone);
                while (c < table.columns.size()) append(c++, kNone);
            }
        }
    }
}

Table scores_table(const std::vector<ScoreModel>& models, bool over_sequences) {
    std::vector<std::string> model, site;
    std::vector<std::int64_t> layer, head;
    std::vector<double> low, high, count, minimum, maximum, mean, deviation;
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
                deviation.push_back(row.deviation);
                for (std::size_t k = 0; k < 3; ++k) above[k].push_back(row.above[k]);
            }
        }
    }
    Table table{{{"model", std::move(model)},
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
    if (over_sequences) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

/// Scores, weights or both; with both, a column names the stage.
Table spread_table(const std::vector<ScoreModel>& models, const FigureOptions& options) {
    const Stage stage = options.stage;
    Table table = scores_table(stage == Stage::after ? std::vector<ScoreModel>() : models, options.all_sequences);
    if (stage == Stage::before) return table;
    table.columns.insert(table.columns.begin(), {"stage", std::vector<std::string>(table.rows(), "score")});
    add_weight_rows(table, models);
    return table;
}

std::string title(const FigureOptions& options) {
    std::string text = options.stage == Stage::before  ? "Attention scores before the normalizer"
                       : options.stage == Stage::after ? "Attention weights after the normalizer"
                                                       : "Attention before and after the normalizer";
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

/// The weights of each model beside its scores, or instead of them.
void add_weight_panels(FigureData& figure, const std::vector<ScoreModel>& models, Stage stage) {
    std::vector<Panel> scores = std::move(figure.panels), weights;
    double low = 1;
    for (std::size_t m = 0; m < models.size(); ++m) {
        Panel panel;
        panel.title = scores[m].title;
        panel.subject = scores[m].subject;
        panel.y.label = scores[m].y.label;
        panel.x.label = "weight";
        panel.x.scale = ScaleKind::logarithmic;
        Ridges ridges;
        for (const double threshold : WeightSpread::kThresholds)
            ridges.note_titles.push_back((ridges.note_titles.empty() ? "w > " : "> ") + short_number(threshold));
        for (const auto& row : models[m].rows) {
            ridges.ridges.push_back(weight_ridge(row, static_cast<int>(m)));
            low = std::fmin(low, ridges.ridges.back().minimum);
        }
        panel.content = std::move(ridges);
        weights.push_back(std::move(panel));
    }
    const double common = common_height(weights);
    figure.panels.clear();
    for (std::size_t m = 0; m < models.size(); ++m) {
        std::get<Ridges>(weights[m].content).highest = common;
        weights[m].x.range = std::pair(low * 0.8, 1.0);
        if (stage == Stage::both) figure.panels.push_back(std::move(scores[m]));
        figure.panels.push_back(std::move(weights[m]));
    }
}

std::string weight_note(const std::vector<ScoreModel>& models) {
    std::int64_t step = 1;
    double below = 0, pairs = 0;
    for (const auto& model : models) {
        for (const auto& row : model.rows) {
            step = std::max(step, row.after->row_step);
            below += row.after->below;
            pairs += row.after->pairs;
        }
    }
    std::string note =
        "Weights: logarithmic axis, heights are shares per decade; dot: mean. At the right: to how many keys a query "
        "gives more than that.";
    if (step > 1) note += " From one query in " + std::to_string(step) + ".";
    if (below > 0 && pairs > 0)
        note += " " + short_number(100 * below / pairs) + " % of the weights are below " +
                short_number(WeightSpread::edge(0)) + " and not drawn.";
    return note;
}

FigureData scores(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<ScoreModel> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(read_scores(*files[f], names[f], options));

    FigureData figure;
    figure.title = title(options);
    std::size_t most = 0;
    double low = 0, high = 0;
    for (std::size_t m = 0; m < models.size(); ++m) {
        Panel panel;
        if (models.size() > 1) panel.title = models[m].name;
        panel.subject = of_analysis(m);
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
    if (options.stage != Stage::before) add_weight_panels(figure, models, options.stage);
    figure.columns = std::ssize(figure.panels);
    figure.reflow = true;
    figure.narrowest_mm = 34;
    const auto rows = static_cast<double>(std::max<std::size_t>(1, most));
    figure.panel_height_mm = 8 + rows * std::clamp(110 / rows, 3.0, 11.0);
    figure.notes = source_notes(files, options);
    if (options.stage != Stage::after)
        figure.notes.push_back(
            std::string("Logarithmic axis, linear within ±8; heights are shares per unit of the drawn axis") +
            (common > 0 ? ", so that equal areas are equal shares." : "; each row is scaled to its own peak.") +
            " Line: minimum to maximum; dot: mean. On the right: numbers of scores above these magnitudes.");
    if (options.all_sequences)
        figure.notes.emplace_back("Counts over all sequences; the CSV has the deviation of their means.");
    if (options.stage != Stage::before) figure.notes.push_back(weight_note(models));
    if (options.stage == Stage::after) {
        figure.table = [models = std::move(models), options] { return spread_table(models, options); };
        return figure;
    }
    for (const auto& model : models) {
        std::vector<std::string> undefined;
        for (const auto& row : model.rows) {
            if (row.undefined) undefined.push_back(row.name);
        }
        if (undefined.empty()) continue;
        const bool heads = options.layer &&
                           chosen_sites(*files[static_cast<std::size_t>(&model - models.data())], options).size() == 1;
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
    figure.table = [models = std::move(models), options] { return spread_table(models, options); };
    return figure;
}

}  // namespace

extern const Recipe kScores{
    .name = "scores",
    .former_name = "logits",
    .description =
        "distribution of the scores per layer, or per head of "
        "--layer, and of the weights; models side by side",
    .needs = "score histograms; --stage after: maps (analyze --record maps)",
    .of_analyses = scores,
    .options = {"layer", "head", "sequence", "names", "stage"},
};

}  // namespace headscope::figures
