// SPDX-License-Identifier: GPL-3.0-or-later
// Checkpoints of one model: the loss, and each indicator by layer (mean over heads and texts), or by head with --layer.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/recipes/indicator_grid.h"

namespace headscope::figures {
namespace {

const std::string kSeriesGroup = "/series/";

/// Steps where every model has its own, else the models' numbers.
std::vector<double> series_axis(const store::AskRecord& record, std::string* label) {
    std::vector<double> steps = record.table("/series/step").values;
    const bool known = std::all_of(steps.begin(), steps.end(), [](double step) { return step >= 0; });
    const bool rising = std::is_sorted(steps.begin(), steps.end(), std::less_equal<>());
    *label = known && rising ? "Step" : "Model";
    if (!(known && rising))
        for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<double>(i);
    return steps;
}

/// Mean over texts, and over heads unless one is chosen, of a site for each model; NaN where no value is known.
std::vector<double> series_means(const store::AskRecord& record, const store::AskTable& table, std::int64_t site,
                                 std::int64_t head) {
    const std::vector<std::int64_t> shape = record.shape_of(table);
    const std::int64_t heads = shape.size() > 3 ? shape[3] : 1;
    std::vector<double> means;
    for (std::int64_t m = 0; m < shape[0]; ++m) {
        double sum = 0, count = 0;
        for (std::int64_t s = 0; s < shape[1]; ++s) {
            for (std::int64_t h = 0; h < heads; ++h) {
                if (head >= 0 && h != head) continue;
                const std::int64_t cell = ((m * shape[1] + s) * shape[2] + site) * heads + h;
                const double value = table.values[static_cast<std::size_t>(cell)];
                if (std::isnan(value)) continue;
                sum += value;
                ++count;
            }
        }
        means.push_back(count > 0 ? sum / count : std::nan(""));
    }
    return means;
}

Curve series_curve(const std::vector<double>& x, const std::vector<double>& y, std::string name) {
    Curve curve;
    curve.name = std::move(name);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(y[i])) continue;
        curve.x.push_back(x[i]);
        curve.y.push_back(y[i]);
    }
    curve.points = curve.x.size() == 1;
    return curve;
}

/// Throws usage for options of runs alone.
void check_series_options(const FigureOptions& options) {
    const auto refuse = [](bool given, const char* option) {
        if (given) throw Error(ErrorCode::usage, option, "expected runs", "found a file of ask series");
    };
    refuse(options.head || !options.heads.empty(), "--head");
    refuse(!options.names.empty(), "--names");
    refuse(options.step.has_value(), "--step");
    refuse(options.against != Against::step, "--against");
}

}  // namespace

FigureData series_timeline(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "timeline", "series");
    check_series_options(options);
    const auto sites = std::ssize(record.sites);
    if (options.layer && (*options.layer < 0 || *options.layer >= std::ssize(record.mixers)))
        throw Error(ErrorCode::usage, "--layer", "expected 0 to " + std::to_string(std::ssize(record.mixers) - 1),
                    "found " + std::to_string(*options.layer));
    std::string axis;
    const std::vector<double> x = series_axis(record, &axis);
    FigureData figure;
    figure.title = "Indicators of " + std::to_string(x.size()) + " checkpoints";
    const store::AskTable& loss = record.table("/series/loss");
    std::vector<double> losses;
    const std::int64_t texts = record.size_of("/sequence");
    for (std::size_t m = 0; m < x.size(); ++m) {
        double sum = 0;
        for (std::int64_t s = 0; s < texts; ++s)
            sum += loss.values[m * static_cast<std::size_t>(texts) + static_cast<std::size_t>(s)];
        losses.push_back(sum / static_cast<double>(texts));
    }
    Panel first;
    first.title = "loss";
    first.content = Curves{{series_curve(x, losses, "")}, {}};
    first.x.label = axis;
    first.y.label = "nat";
    if (!std::all_of(losses.begin(), losses.end(), [](double one) { return std::isnan(one); }))
        figure.panels.push_back(std::move(first));
    std::vector<std::string> members;
    for (const store::AskTable& table : record.tables) {
        const std::string name =
            table.path.starts_with(kSeriesGroup) ? table.path.substr(kSeriesGroup.size()) : std::string();
        const bool indicator = table.dimensions.size() > 2 && table.dimensions.size() < 5;
        if (!indicator || (!options.indicator.empty() && options.indicator != name)) continue;
        std::vector<Curve> curves;
        std::vector<std::string> names;
        const auto add = [&](std::int64_t site, std::int64_t head, const std::string& label) {
            Curve curve = series_curve(x, series_means(record, table, site, head), label);
            if (curve.x.empty()) return;
            names.push_back(label);
            curves.push_back(std::move(curve));
        };
        for (std::int64_t site = 0; site < sites; ++site) {
            const Site& about = record.sites[static_cast<std::size_t>(site)];
            if (options.layer && about.layer != *options.layer) continue;
            if (options.layer && table.dimensions.size() > 3)
                for (std::int64_t h = 0; h < about.heads; ++h) add(site, h, "head " + std::to_string(h));
            else
                add(site, -1, "layer " + site_label(std::span<const Site>(record.sites), site));
        }
        if (curves.empty()) continue;
        for (std::size_t i = 0; i < curves.size(); ++i) colour_member(curves[i], i, curves.size());
        if (names.size() > members.size()) members = names;
        Panel panel;
        panel.title = indicator_title(name);
        panel.x.label = axis;
        panel.content = Curves{std::move(curves), {}};
        figure.panels.push_back(std::move(panel));
    }
    if (figure.panels.empty())
        throw Error(ErrorCode::usage, "--indicator", "expected an indicator of the file", "found " + options.indicator);
    figure.legend = member_legend(members);
    figure.columns = std::min<std::int64_t>(4, std::ssize(figure.panels));
    figure.reflow = true;
    figure.narrowest_mm = 24;
    figure.panel_aspect = 0.8;
    figure.notes.push_back(options.layer ? "A curve a head of layer " + std::to_string(*options.layer) + "."
                                         : std::string("A curve a layer: mean over its heads."));
    figure.notes.push_back("Means over " + std::to_string(texts) + (texts == 1 ? " text, " : " texts, ") +
                           record.model_name + " first.");
    if (!record.complete) figure.notes.emplace_back("Partial file: later models are not analyzed yet.");
    figure.table = [table = ask_table(record, loss)] { return table; };
    return figure;
}

}  // namespace headscope::figures
