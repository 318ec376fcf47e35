// SPDX-License-Identifier: GPL-3.0-or-later
// How a model's attention came about: indicators of each layer against the step, from the probes of a run. With --step
// a line there, the radar of each layer and the thumbnails of its heads at the last probe up to it.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/site_name.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/indicator_grid.h"
#include "core/figures/recipes/run_probe.h"
#include "core/figures/recipes/run_series.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kMostPoints = 500;

struct Drawn {
    std::string name, title;
};

class Maker {
public:
    Maker(Runs runs, const FigureOptions& options)
        : runs_(runs), options_(options), names_(run_labels(runs, options)), axis_(runs, options.against) {}

    FigureData make() {
        for (const auto& run : runs_) check(*run);
        choose_indicators();
        FigureData figure;
        figure.title = runs_.size() > 1 ? "Indicators while learning" : "Indicators while " + names_[0] + " learned";
        for (const Drawn& indicator : drawn_) {
            for (std::size_t r = 0; r < runs_.size(); ++r) figure.panels.push_back(panel(indicator, r));
        }
        const auto count = std::ssize(figure.panels);
        if (runs_.size() > 1) {
            figure.columns = std::ssize(runs_);
            figure.column_labels = names_;
        } else {
            figure.columns = std::min<std::int64_t>(4, count);
            figure.reflow = true;
            figure.narrowest_mm = 24;
        }
        figure.panel_aspect = count == 1 ? 0.55 : 0.8;
        figure.legend = member_legend(members_);
        figure.notes.push_back(options_.layer ? "A curve a head of layer " + std::to_string(*options_.layer) + "."
                                              : std::string("A curve a layer: ") +
                                                    (options_.head ? "head " + std::to_string(*options_.head)
                                                                   : std::string("mean over its heads")) +
                                                    ".");
        figure.notes.push_back("Measured on the same " + std::string("sequences each time, means over them; ") +
                               std::to_string(runs_[0]->probes.count()) + " probes.");
        if (options_.step) add_moment(figure);
        table(figure);
        return figure;
    }

private:
    void check(const store::RunRecord& run) const {
        if (run.probes.count() == 0) {
            throw Error(ErrorCode::usage, "figure timeline of " + escaped(run.name),
                        "expected a run whose job has a [probe]", "found no probe yet");
        }
        if (options_.step && runs_.size() > 1) {
            throw Error(ErrorCode::usage, "--step", "expected one run", "found " + std::to_string(runs_.size()));
        }
        sites_of(run);
    }

    /// Sites that are drawn; each a curve, or with --layer those whose heads are.
    std::vector<std::int64_t> sites_of(const store::RunRecord& run) const {
        std::vector<std::int64_t> sites;
        std::int64_t most_layers = 0, most_heads = 0;
        for (std::int64_t s = 0; s < std::ssize(run.sites); ++s) {
            const auto& site = run.sites[static_cast<std::size_t>(s)];
            most_layers = std::max<std::int64_t>(most_layers, site.layer + 1);
            most_heads = std::max<std::int64_t>(most_heads, site.heads);
            if (!options_.layer || *options_.layer == site.layer) sites.push_back(s);
        }
        if (sites.empty()) {
            throw Error(ErrorCode::usage, "--layer", "expected 0 to " + std::to_string(most_layers - 1),
                        "found " + (options_.layer ? std::to_string(*options_.layer) : "none"));
        }
        if (options_.head && *options_.head >= most_heads) {
            throw Error(ErrorCode::usage, "--head", "expected 0 to " + std::to_string(most_heads - 1),
                        "found " + std::to_string(*options_.head));
        }
        return sites;
    }

    void choose_indicators() {
        std::vector<std::string> names;
        if (!options_.indicator.empty() && options_.indicator != "local_focus") {
            names.push_back(options_.indicator);
        } else {
            const auto known = probe_indicators(*runs_[0]);
            for (const char* name : kRadarNames) {
                const bool wanted = options_.indicator.empty() || std::string_view(name).starts_with("local_focus");
                if (wanted && std::find(known.begin(), known.end(), name) != known.end()) names.emplace_back(name);
            }
            if (names.empty()) names = known;
        }
        for (const auto& name : names) drawn_.push_back({name, indicator_title(name)});
    }

    Panel panel(const Drawn& indicator, std::size_t r) {
        const auto& run = *runs_[r];
        const auto sites = sites_of(run);
        const auto x = axis_.places(run, run.probes.step);
        std::vector<Curve> curves;
        std::vector<std::string> members;
        const auto add = [&](std::int64_t site, std::optional<std::int64_t> head, std::string name) {
            const auto values = probe_values(run, indicator.name, site, head);
            Curve curve = thinned(known_points(x, values), kMostPoints);
            curve.name = name;
            if (curve.x.size() == 1) curve.points = true;
            members.push_back(std::move(name));
            curves.push_back(std::move(curve));
            for (std::int64_t p = 0; p < run.probes.count(); ++p) {
                row(r, run.sites[static_cast<std::size_t>(site)].layer, head.value_or(-1), indicator.name,
                    run.probes.step[static_cast<std::size_t>(p)], values[static_cast<std::size_t>(p)]);
            }
        };
        for (const auto site : sites) {
            const auto& about = run.sites[static_cast<std::size_t>(site)];
            if (options_.layer && !options_.head && indicator.name != "head_diversity") {
                const std::string place = sites.size() > 1 ? site_title(run.sites, site) + ", " : "";
                for (std::int64_t h = 0; h < about.heads; ++h) add(site, h, place + "head " + std::to_string(h));
            } else {
                add(site, options_.head, site_title(run.sites, site));
            }
        }
        for (std::size_t i = 0; i < curves.size(); ++i) colour_member(curves[i], i, curves.size());
        if (members.size() > members_.size()) members_ = members;
        Panel panel;
        panel.title = indicator.title;
        panel.x.label = axis_.label();
        panel.content = Curves{std::move(curves), {}};
        if (options_.step) panel.markers.push_back({true, axis_.place(run, run.probes.step[moment()]), ""});
        return panel;
    }

    std::size_t moment() const { return static_cast<std::size_t>(probe_at(*runs_[0], *options_.step)); }

    void add_moment(FigureData& figure) {
        const auto& run = *runs_[0];
        const auto probe = static_cast<std::int64_t>(moment());
        const auto extents = probe_extents(run, options_.head);
        const std::string at = std::to_string(run.probes.step[moment()]);
        bool recurrent = false;
        figure.panel_aspect = 1;
        figure.shared_colours = true;
        for (const auto site : sites_of(run)) {
            const RadarValues raw = probe_radar(run, probe, site, options_.head);
            Radar radar;
            radar.spokes.assign(kRadarSymbols.begin(), kRadarSymbols.end());
            const Site& about = run.sites[static_cast<std::size_t>(site)];
            recurrent = recurrent || about.has_implicit;
            if (!about.has_matrix && !about.has_implicit)
                radar.nothing = "no attention matrix";
            else if (std::all_of(raw.begin(), raw.end(), [](double value) { return std::isnan(value); }))
                radar.nothing = "not measured";
            Radar::Series series{names_[0], {}, 0, {}};
            for (std::size_t k = 0; k < kRadarSpokes; ++k) series.values.push_back(displayed(raw, k, extents));
            radar.series.push_back(std::move(series));
            Panel panel;
            panel.title = site_heading(run.sites, site) + ", step " + at;
            panel.content = std::move(radar);
            figure.panels.push_back(std::move(panel));
        }
        add_thumbnails(figure, run, probe);
        figure.notes.push_back("At step " + at +
                               ": H entropy, C concentration, HD head diversity, min–max over all layers and steps of "
                               "the run; LF0–3 local focus times two; S sink, the rim is 1.");
        if (recurrent) figure.notes.emplace_back(kRecurrentRadar);
    }

    /// A mosaic a layer, of one scale.
    void add_thumbnails(FigureData& figure, const store::RunRecord& run, std::int64_t probe) const {
        if (run.probes.thumbnail_size == 0) return;
        std::vector<Panel> panels;
        float highest = 0;
        for (const auto site : sites_of(run)) {
            Mosaic mosaic = mosaic_of(run, probe, site);
            const bool there = std::any_of(mosaic.values.begin(), mosaic.values.end(),
                                           [](float value) { return std::isfinite(value); });
            if (!there) continue;  // a layer without a matrix
            for (const float value : mosaic.values) highest = std::max(highest, std::isnan(value) ? 0.0F : value);
            Panel panel;
            panel.title = site_heading(run.sites, site) + ", heads";
            panel.content = std::move(mosaic);
            panels.push_back(std::move(panel));
        }
        for (auto& panel : panels) {
            std::get<Mosaic>(panel.content).colours.maximum = highest > 0 ? highest : 1;
            figure.panels.push_back(std::move(panel));
        }
        if (!panels.empty()) {
            figure.notes.push_back(
                "Heads: mean weights of blocks of the first sequence, square-root colours from 0 to " +
                short_number(highest) + ".");
        }
    }

    static Mosaic mosaic_of(const store::RunRecord& run, std::int64_t probe, std::int64_t site) {
        const auto heads = run.sites[static_cast<std::size_t>(site)].heads;
        Mosaic mosaic;
        mosaic.size = run.probes.thumbnail_size;
        mosaic.columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(heads))));
        mosaic.rows = heads > 0 ? (heads + mosaic.columns - 1) / mosaic.columns : 0;
        mosaic.pooling = Pooling::mean;
        mosaic.colours.scale = ScaleKind::square_root;
        const auto cells = static_cast<std::size_t>(mosaic.size * mosaic.size);
        mosaic.values.assign(static_cast<std::size_t>(mosaic.rows * mosaic.columns) * cells,
                             std::numeric_limits<float>::quiet_NaN());
        for (std::int64_t h = 0; h < heads; ++h) {
            const auto tile = probe_thumbnail(run, probe, site, h);
            std::copy(tile.begin(), tile.end(),
                      mosaic.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(h) * cells));
            mosaic.tile_labels.push_back(std::to_string(h));
        }
        mosaic.tile_labels.resize(static_cast<std::size_t>(mosaic.rows * mosaic.columns));
        return mosaic;
    }

    void row(std::size_t r, std::int64_t layer, std::int64_t head, const std::string& indicator, std::int64_t step,
             double value) {
        run_.push_back(names_[r]);
        layer_.push_back(layer);
        head_.push_back(head);
        indicator_.push_back(indicator);
        step_.push_back(step);
        value_.push_back(value);
    }

    void table(FigureData& figure) {
        Table table{{{"run", std::move(run_)},
                     {"layer", std::move(layer_)},
                     {"head", std::move(head_)},
                     {"indicator", std::move(indicator_)},
                     {"step", std::move(step_)},
                     {"value", std::move(value_)}}};
        figure.table = [table = std::move(table)] { return table; };
    }

    Runs runs_;
    const FigureOptions& options_;
    std::vector<std::string> names_;
    RunAxis axis_;
    std::vector<Drawn> drawn_;
    std::vector<std::string> members_;
    std::vector<std::string> run_, indicator_;
    std::vector<std::int64_t> layer_, head_, step_;
    std::vector<double> value_;
};

FigureData timeline(const FigureInputs& inputs, const FigureOptions& options) {
    if (!inputs.asks.empty()) return series_timeline(inputs, options);
    return Maker(inputs.runs, options).make();
}

}  // namespace

extern const Recipe kTimeline{
    .name = "timeline",
    .description =
        "indicators of each layer while a model learned; of runs with "
        "--step: radar and thumbnails of the layers at that step",
    .needs = "runs with a probe; or ask series",
    .of_others = timeline,
    .others = RecipeInputs::runs,
    .or_others = RecipeInputs::asks,
    .options = {"layer", "head", "names", "indicator", "step", "against"},
};

}  // namespace headscope::figures
