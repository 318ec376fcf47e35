// SPDX-License-Identifier: GPL-3.0-or-later
// Time against length (NAtS-L, Fig. 4): a panel for reading a text and one for one more token of it, a line a model
// through the medians, bars from the 10th to the 90th percentile, both axes logarithmic.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

struct Part {
    const char* task;
    const char* title;
};
constexpr Part kParts[] = {{"prefill", "Reading the text"}, {"decode", "One more token"}};

class Maker {
public:
    explicit Maker(const EvaluationGroups& evaluations)
        : evaluations_(evaluations), names_(group_names(evaluations.groups())) {}

    FigureData make() {
        FigureData figure;
        figure.title = "Latency by length";
        const auto& groups = evaluations_.groups();
        for (const Part& part : kParts) {
            Panel panel = this->panel(part);
            if (!std::get<Curves>(panel.content).curves.empty()) figure.panels.push_back(std::move(panel));
        }
        if (figure.panels.empty())
            throw Error(ErrorCode::usage, "figure latency", "expected times of cost --latency", "found none above 0");
        figure.columns = std::ssize(figure.panels);
        figure.reflow = true;
        figure.narrowest_mm = 45;
        figure.panel_aspect = 0.8;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const Curve coloured = curve(g);
            figure.legend.push_back({names_[g], coloured.colour, coloured.shade});
        }
        figure.notes.emplace_back("Medians; bars from the 10th to the 90th percentile of the repeats.");
        figure.table = [table = table()] { return table; };
        return figure;
    }

private:
    Curve curve(std::size_t group) const {
        Curve curve;
        curve.name = names_[group];
        colour_member(curve, group, evaluations_.groups().size());
        return curve;
    }
    static double found(const EvaluationGroup& group, const Part& part, const char* metric, std::int64_t length) {
        const auto* value = group.find({part.task, metric}, length);
        return value == nullptr ? std::nan("") : value->mean;
    }
    std::set<std::int64_t> lengths(const Part& part) const {
        std::set<std::int64_t> lengths = evaluations_.lengths({part.task, "seconds"});
        lengths.erase(lengths.begin(), lengths.lower_bound(1));
        return lengths;
    }

    Panel panel(const Part& part) const {
        Panel panel;
        Curves curves;
        std::vector<double> reach;
        const auto& groups = evaluations_.groups();
        const auto lengths = this->lengths(part);
        for (std::size_t g = 0; g < groups.size(); ++g) {
            Curve line = curve(g);
            std::vector<Curve> bars;
            for (const std::int64_t length : lengths) {
                const double median = found(groups[g], part, "seconds", length);
                if (!(median > 0)) continue;
                const auto x = static_cast<double>(length);
                line.x.push_back(x);
                line.y.push_back(median);
                reach.push_back(median);
                const double low = found(groups[g], part, "seconds_p10", length),
                             high = found(groups[g], part, "seconds_p90", length);
                if (!(low > 0) || !(high >= low)) continue;
                Curve bar = curve(g);
                bar.x = {x, x};
                bar.y = {low, high};
                bar.width = 0.7;
                reach.insert(reach.end(), {low, high});
                bars.push_back(std::move(bar));
            }
            if (line.x.empty()) continue;
            Curve dots = line;
            dots.points = true;
            dots.dot = 0.85;
            std::move(bars.begin(), bars.end(), std::back_inserter(curves.curves));
            curves.curves.push_back(std::move(line));
            curves.curves.push_back(std::move(dots));
        }
        panel.title = part.title;
        panel.y.label = "time (s)";
        panel.y.scale = ScaleKind::logarithmic;
        panel.y.range = padded_range(reach, ScaleKind::logarithmic);
        panel.content = std::move(curves);
        set_length_axis(panel, lengths, {});
        return panel;
    }

    Table table() const {
        std::vector<std::string> model, task;
        std::vector<std::int64_t> length;
        std::vector<double> median, low, high, peak, cache;
        const auto& groups = evaluations_.groups();
        for (const Part& part : kParts) {
            for (std::size_t g = 0; g < groups.size(); ++g) {
                for (const std::int64_t at : lengths(part)) {
                    if (groups[g].find({part.task, "seconds"}, at) == nullptr) continue;
                    model.push_back(names_[g]);
                    task.emplace_back(part.task);
                    length.push_back(at);
                    median.push_back(found(groups[g], part, "seconds", at));
                    low.push_back(found(groups[g], part, "seconds_p10", at));
                    high.push_back(found(groups[g], part, "seconds_p90", at));
                    peak.push_back(found(groups[g], part, "peak_bytes", at));
                    cache.push_back(found(groups[g], part, "cache_bytes", at));
                }
            }
        }
        return {{{"model", std::move(model)},
                 {"task", std::move(task)},
                 {"length", std::move(length)},
                 {"seconds", std::move(median)},
                 {"seconds_p10", std::move(low)},
                 {"seconds_p90", std::move(high)},
                 {"peak_bytes", std::move(peak)},
                 {"cache_bytes", std::move(cache)}}};
    }

    const EvaluationGroups& evaluations_;
    std::vector<std::string> names_;
};

FigureData latency(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "latency", options.names);
    return Maker(evaluations).make();
}

}  // namespace

extern const Recipe kLatency{
    .name = "latency",
    .description = "time of prefill and of one decoded token, against the length",
    .needs = "results of cost --latency",
    .of_others = latency,
    .others = RecipeInputs::evaluations,
    .options = {"names"},
};

}  // namespace headscope::figures
