// SPDX-License-Identifier: GPL-3.0-or-later
// Loss of training runs (Deconstructing Attention, Fig. 5): each step faint, the mean of the last steps wide, held-out
// loss as dots on a line. One run: one panel. Several: training beside validation, a colour a run.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/series.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/run_series.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostPoints = 1200, kMostDots = 60;

std::size_t window_of(const store::RunRecord& run, const FigureOptions& options) {
    if (options.smooth) return static_cast<std::size_t>(std::max<std::int64_t>(1, *options.smooth));
    return std::max<std::size_t>(1, run.training.step.size() / 50);
}

struct Extent {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void take(const std::vector<double>& values) {
        for (const double value : values) {
            if (!std::isfinite(value)) continue;
            low = std::min(low, value);
            high = std::max(high, value);
        }
    }
};

class Maker {
public:
    Maker(Runs runs, const FigureOptions& options)
        : runs_(runs), options_(options), names_(run_labels(runs, options)), axis_(runs, options.against) {}

    FigureData make() {
        const bool several = runs_.size() > 1;
        bool held_out = false;
        for (const auto& run : runs_) held_out |= !run->validation.step.empty();
        Panel training, validation;
        training.content = Curves();
        validation.content = Curves();
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            add_training(training, r);
            add_validation(several ? validation : training, r, several);
        }
        FigureData figure;
        figure.title = several ? "Loss of " + std::to_string(runs_.size()) + " runs" : "Loss of " + names_[0];
        training.title = several && held_out ? "Training" : "";
        validation.title = "Validation";
        const double margin = 0.04 * (extent_.high - extent_.low);
        const bool log = options_.log_loss;
        const std::pair range{log ? extent_.low / 1.02 : std::max(0.0, extent_.low - margin),
                              log ? extent_.high * 1.02 : extent_.high + margin};
        for (Panel* panel : {&training, &validation}) {
            panel->x.label = axis_.label();
            panel->y.label = options_.perplexity ? "perplexity" : "loss (nats per token)";
            if (log) panel->x.scale = panel->y.scale = ScaleKind::logarithmic;
            if (range.second > range.first) panel->y.range = range;
            if (const auto part = shown_part()) panel->x.range = part;
        }
        figure.panels.push_back(std::move(training));
        if (several && held_out) figure.panels.push_back(std::move(validation));
        figure.columns = std::ssize(figure.panels);
        figure.reflow = true;
        figure.narrowest_mm = 50;
        figure.share_y = true;
        figure.panel_aspect = figure.columns > 1 ? 0.75 : 0.55;
        if (several) {
            for (std::size_t r = 0; r < runs_.size(); ++r) figure.legend.push_back(legend_entry(r, names_[r]));
        } else if (held_out) {
            figure.legend = {{"training", 0}, {"validation", 1}};
        }
        notes(figure);
        figure.table = [table = std::move(table_)] { return table; };
        return figure;
    }

private:
    void colour(Curve& curve, std::size_t run) const { colour_member(curve, run, runs_.size()); }

    LegendEntry legend_entry(std::size_t run, const std::string& name) const {
        Curve coloured;
        colour(coloured, run);
        return {name, coloured.colour, coloured.shade};
    }

    /// The part of the axis that is drawn, in its own units; an end that is not given is the data's.
    std::optional<std::pair<double, double>> shown_part() const {
        if (!options_.from_x && !options_.to_x) return std::nullopt;
        double last = 0;
        for (const auto& run : runs_)
            if (!run->training.step.empty()) last = std::max(last, axis_.place(*run, run->training.step.back()));
        const std::pair part{options_.from_x.value_or(0) / axis_.unit(),
                             options_.to_x ? *options_.to_x / axis_.unit() : last};
        if (part.second > part.first) return part;
        throw Error(ErrorCode::usage, options_.to_x ? "--to" : "--from",
                    "expected a part of the axis, which ends at " + short_number(last * axis_.unit(), 6),
                    "found " + short_number(options_.from_x.value_or(0), 6) + " to " +
                        short_number(part.second * axis_.unit(), 6));
    }

    /// The points of a curve that are drawn: within the part, above 0 on a logarithmic axis, of loss or perplexity.
    Curve points(std::span<const double> x, std::span<const double> loss) const {
        const Curve all = known_points(x, loss);
        const auto part = shown_part();
        Curve curve;
        for (std::size_t i = 0; i < all.x.size(); ++i) {
            const double value = options_.perplexity ? std::exp(all.y[i]) : all.y[i];
            if (part && (all.x[i] < part->first || all.x[i] > part->second)) continue;
            if (options_.log_loss && (!(all.x[i] > 0) || !(value > 0))) continue;
            if (!std::isfinite(value)) continue;
            curve.x.push_back(all.x[i]);
            curve.y.push_back(value);
        }
        return curve;
    }

    void add_training(Panel& panel, std::size_t r) {
        const auto& run = *runs_[r];
        const auto x = axis_.places(run, run.training.step);
        const std::size_t window = window_of(run, options_);
        const auto smooth = running_mean(run.training.loss, window);
        auto& curves = std::get<Curves>(panel.content).curves;
        Curve mean = points(x, smooth);
        mean.name = names_[r];
        colour(mean, r);
        if (window > 1) {
            Curve raw = points(x, run.training.loss);
            raw.name = names_[r];
            colour(raw, r);
            raw.faint = true;
            curves.insert(curves.begin(), thinned(std::move(raw), kMostPoints));
        }
        extent_.take(mean.y);
        curves.push_back(thinned(std::move(mean), kMostPoints));
        rows(r, "training", run.training.step, run.training.loss, smooth);
    }

    void add_validation(Panel& panel, std::size_t r, bool several) {
        const auto& run = *runs_[r];
        const auto x = axis_.places(run, run.validation.step);
        Curve line = points(x, run.validation.loss);
        extent_.take(line.y);
        line.name = names_[r];
        colour(line, r);
        if (!several) line.colour = 1;
        Curve dots = line;
        dots.points = true;
        dots.dot = 0.8;
        auto& curves = std::get<Curves>(panel.content).curves;
        curves.push_back(thinned(std::move(line), kMostPoints));
        if (dots.x.size() <= kMostDots) curves.push_back(std::move(dots));
        rows(r, "validation", run.validation.step, run.validation.loss, {});
    }

    void notes(FigureData& figure) const {
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            const auto& run = *runs_[r];
            std::string note = names_[r] + ": ";
            if (run.training.step.empty()) {
                figure.notes.push_back(note + "no step yet.");
                continue;
            }
            const auto smooth = running_mean(run.training.loss, window_of(run, options_));
            note += "step " + std::to_string(run.last_step()) + ", training loss " + short_number(smooth.back());
            const auto& held = run.validation.loss;
            const auto best = std::min_element(held.begin(), held.end(), [](double a, double b) {
                return (std::isnan(a) ? INFINITY : a) < (std::isnan(b) ? INFINITY : b);
            });
            if (best != held.end()) {
                note += ", least validation loss " + short_number(*best) + " (perplexity " +
                        short_number(std::exp(*best)) + ") at step " +
                        std::to_string(run.validation.step[static_cast<std::size_t>(best - held.begin())]);
            }
            figure.notes.push_back(note + (run.state == "finished" ? "." : ", " + run.state + "."));
        }
        const auto window = window_of(*runs_[0], options_);
        if (window > 1) {
            figure.notes.push_back("Thin lines: each step; thick lines: mean of the last " +
                                   (options_.smooth || runs_.size() == 1 ? std::to_string(window) + " steps"
                                                                         : std::string("fiftieth of the steps")) +
                                   ".");
        }
    }

    void rows(std::size_t r, const char* kind, const std::vector<std::int64_t>& steps, const std::vector<double>& loss,
              const std::vector<double>& smooth) {
        for (std::size_t i = 0; i < steps.size(); ++i) {
            run_.push_back(names_[r]);
            kind_.emplace_back(kind);
            step_.push_back(steps[i]);
            loss_.push_back(loss[i]);
            smooth_.push_back(smooth.empty() ? kNone : smooth[i]);
        }
        table_ = {{{"run", run_}, {"of", kind_}, {"step", step_}, {"loss", loss_}, {"running_mean", smooth_}}};
    }

    Runs runs_;
    const FigureOptions& options_;
    std::vector<std::string> names_;
    RunAxis axis_;
    Extent extent_;
    std::vector<std::string> run_, kind_;
    std::vector<std::int64_t> step_;
    std::vector<double> loss_, smooth_;
    Table table_;
};

}  // namespace

FigureData run_loss(const FigureInputs& inputs, const FigureOptions& options) {
    return Maker(inputs.runs, options).make();
}

}  // namespace headscope::figures
