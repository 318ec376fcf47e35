// SPDX-License-Identifier: GPL-3.0-or-later
// How much of a baseline's results smaller models keep (the thesis, Tables 2.2, 2.3, 3.1 to 3.3): a panel a task, a dot
// a model by its parameters; a table with elasticity, compression and speed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/cost/thesis.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kSpeed = "speed";     ///< the task whose metrics are times
constexpr std::string_view kTime = "_ms";   ///< ends their names
constexpr const char* kRate = "speed_up_";  ///< begins ours, made of them

double finite(double value) {
    return std::isfinite(value) ? value : kNone;
}

/// The count; NaN if unknown.
double known(std::int64_t count) {
    return count < 0 ? kNone : static_cast<double>(count);
}

/// One result of one model; NaN: cannot be had.
struct Row {
    std::size_t group = 0;
    Measured what;
    std::int64_t length = 0;
    bool shown = true;  ///< at the length that the figure is of; the numbers are of all
    double score = kNone, error = kNone, prr = kNone, peop = kNone;
    std::size_t seeds = 1;

    bool is_rate() const { return what.metric.starts_with(kRate); }
    /// The value that a panel draws.
    double drawn() const { return is_rate() ? score : 100 * prr; }
};

std::string fixed(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

class Maker {
public:
    Maker(const EvaluationGroups& evaluations, const FigureOptions& options)
        : evaluations_(evaluations),
          groups_(evaluations.groups()),
          names_(group_names(groups_)),
          baseline_(&named("--baseline", options.baseline)),
          smallest_(options.smallest.empty() ? nullptr : &named("--smallest", options.smallest)) {
        static_cast<void>(evaluations.chosen(options));  // of what there is not
        for (const Measured& what : evaluations.measured()) {
            if (!options.task.empty() && what.task != options.task) continue;
            if (!options.metric.empty() && what.metric != options.metric) continue;
            const std::int64_t chosen = evaluations.chosen_length(what, options);
            for (const std::int64_t length : evaluations.lengths(what))
                if (!options.length || length == chosen) add_rows(what, length, length == chosen);
        }
    }

    FigureData make() const {
        FigureData figure;
        figure.title = "Performance retention beside " + name_of(*baseline_);
        const std::vector<Measured> drawn = this->drawn();
        check_panels(drawn.size());
        for (const Measured& what : drawn) figure.panels.push_back(panel(what));
        figure.columns = std::min<std::int64_t>(3, std::ssize(figure.panels));
        figure.reflow = true;
        figure.narrowest_mm = 40;
        figure.panel_aspect = 0.75;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            Curve curve;
            colour_member(curve, i, groups_.size());
            figure.legend.push_back({names_[i], curve.colour, curve.shade});
        }
        figure.text_table = text_table();
        figure.notes = notes();
        figure.table = [table = numbers()] { return table; };
        return figure;
    }

private:
    const EvaluationGroup& named(const char* option, const std::string& name) const {
        return groups_[named_group(groups_, option, name)];
    }
    const std::string& name_of(const EvaluationGroup& group) const {
        return names_[static_cast<std::size_t>(&group - groups_.data())];
    }

    void add_rows(const Measured& what, std::int64_t length, bool shown) {
        const bool lower = lower_is_better(what.metric), time = what.task == kSpeed;
        const auto* of_baseline = baseline_->find(what, length);
        const auto* of_smallest = smallest_ ? smallest_->find(what, length) : nullptr;
        std::vector<Row> rates;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            const auto* value = groups_[i].find(what, length);
            if (value == nullptr) continue;
            Row row{i, what, length, shown, value->mean, value->error, kNone, kNone, value->each.size()};
            if (time) {
                Row rate{i, what, length, shown};
                const bool named = what.metric.ends_with(kTime);
                rate.what.metric = kRate + what.metric.substr(0, what.metric.size() - (named ? kTime.size() : 0));
                if (of_baseline) rate.score = finite(of_baseline->mean / value->mean);
                rates.push_back(rate);
            } else {
                if (of_baseline) row.prr = finite(cost::performance_retention(value->mean, of_baseline->mean, lower));
                if (of_smallest && &groups_[i] != smallest_)
                    row.peop = elasticity(groups_[i].mixer, value->mean, groups_[i].attention_parameters,
                                          of_smallest->mean, smallest_->attention_parameters, lower);
            }
            rows_.push_back(row);
        }
        rows_.insert(rows_.end(), rates.begin(), rates.end());
    }

    struct Sizes {
        double pcr_all, pcr_emb, poep;
    };
    Sizes sizes(const EvaluationGroup& group) const {
        const double all = known(group.parameters), embedding = known(group.embedding_parameters);
        return {finite(cost::parameter_saving(all, known(baseline_->parameters))),
                finite(cost::parameter_saving(embedding, known(baseline_->embedding_parameters))),
                finite(embedding / all)};
    }

    /// Quantities with a panel.
    std::vector<Measured> drawn() const {
        std::vector<Measured> all;
        for (const Row& row : rows_)
            if (row.shown && std::isfinite(row.drawn()) && std::find(all.begin(), all.end(), row.what) == all.end())
                all.push_back(row.what);
        if (!all.empty()) return all;
        throw Error(ErrorCode::usage, "--baseline", "expected a model with results to compare others with",
                    "found none of " + escaped(name_of(*baseline_)));
    }

    /// Attention's, where every model's is known.
    bool by_attention() const {
        return std::all_of(groups_.begin(), groups_.end(),
                           [](const EvaluationGroup& group) { return group.attention_parameters > 0; });
    }

    Panel panel(const Measured& what) const {
        Panel panel;
        panel.title = evaluations_.title(what);
        Curves curves;
        const bool rates = what.metric.starts_with(kRate);
        const double same = rates ? 1 : 100;
        std::vector<double> counts, values{same};
        for (const Row& row : rows_) {
            if (!row.shown || row.what != what || !std::isfinite(row.drawn())) continue;
            const EvaluationGroup& group = groups_[row.group];
            const double count = known(by_attention() ? group.attention_parameters : group.parameters);
            Curve dot{names_[row.group], {count}, {row.drawn()}, {}};
            dot.points = true;
            dot.dot = 1.3;
            colour_member(dot, row.group, groups_.size());
            counts.push_back(count);
            values.push_back(row.drawn());
            curves.curves.push_back(std::move(dot));
        }
        panel.content = std::move(curves);
        panel.x.label = by_attention() ? "weights of attention" : "parameters";
        panel.x.scale = scale_for(counts);
        panel.x.range = padded_range(counts, panel.x.scale);
        for (const double count : ends(counts)) panel.x.ticks.push_back({count, short_count(count)});
        panel.y.label = rates ? "speed-up" : "retention (%)";
        panel.y.range = padded_range(values, ScaleKind::linear);
        panel.markers.push_back({false, same, name_of(*baseline_)});
        return panel;
    }

    /// The least and the greatest, one if they are the same.
    static std::vector<double> ends(const std::vector<double>& values) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        return *low == *high ? std::vector{*low} : std::vector{*low, *high};
    }

    TextTable text_table() const {
        const auto text = [](double value, double unit, int digits) {
            return std::isfinite(value) ? fixed(unit * value, digits) : std::string("–");
        };
        TextTable table;
        table.header = {"task",      "model",      "result", "PRR %",      "PEoP",
                        "attention", "parameters", "PCR %",  "PCR emb. %", "PoEP %"};
        table.words = 2;
        Measured last;
        for (const Row& row : rows_) {
            if (!row.shown) continue;
            const EvaluationGroup& group = groups_[row.group];
            const Sizes size = sizes(group);
            std::string score = short_number(row.score, 4);
            if (row.seeds > 1) score += " ± " + short_number(row.error, 2);
            table.rows.push_back({row.what == last ? "" : evaluations_.title(row.what), names_[row.group], score,
                                  text(row.prr, 100, 1), text(row.peop, 1, 2),
                                  group.attention_parameters < 0 ? "–" : short_count(known(group.attention_parameters)),
                                  short_count(known(group.parameters)), text(size.pcr_all, 100, 1),
                                  text(size.pcr_emb, 100, 1), text(size.poep, 100, 1)});
            last = row.what;
        }
        // Columns that say nothing of any model.
        for (std::size_t c = table.header.size(); c-- > table.words;) {
            if (std::any_of(table.rows.begin(), table.rows.end(), [c](const auto& row) { return row[c] != "–"; }))
                continue;
            const auto place = static_cast<std::ptrdiff_t>(c);
            table.header.erase(table.header.begin() + place);
            for (auto& row : table.rows) row.erase(row.begin() + place);
        }
        return table;
    }

    std::vector<std::string> notes() const {
        std::vector<std::string> notes{
            "PRR: the result as a share of " + name_of(*baseline_) +
            "'s; where lower is better, 1 minus the relative increase. PCR: share of its parameters, or of its "
            "embeddings, that is saved. PoEP: share of embeddings in all parameters."};
        if (smallest_)
            notes.push_back("PEoP: increase of the result over " + name_of(*smallest_) +
                            "'s, in percent, for each percent of additional attention weights.");
        const bool seeds = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.seeds > 1; });
        if (seeds) notes.emplace_back("Results: mean ± standard deviation over seeds.");
        if (std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.is_rate(); }))
            notes.push_back("Speed-up: time per sample of " + name_of(*baseline_) + " divided by the model's.");
        return notes;
    }

    Table numbers() const {
        std::vector<std::string> model, task, metric, text, subset;
        std::vector<double> score, prr, peop, pcr_all, pcr_emb, poep;
        for (const Row& row : rows_) {
            const Sizes size = sizes(groups_[row.group]);
            model.push_back(groups_[row.group].name());
            task.push_back(row.what.task);
            metric.push_back(row.what.metric);
            text.push_back(row.what.text);
            subset.push_back(row.what.subset);
            score.push_back(row.score);
            prr.push_back(row.prr);
            peop.push_back(row.peop);
            pcr_all.push_back(size.pcr_all);
            pcr_emb.push_back(size.pcr_emb);
            poep.push_back(size.poep);
        }
        return {{{"model", std::move(model)},
                 {"task", std::move(task)},
                 {"metric", std::move(metric)},
                 {"score", std::move(score)},
                 {"prr", std::move(prr)},
                 {"peop", std::move(peop)},
                 {"pcr_all", std::move(pcr_all)},
                 {"pcr_emb", std::move(pcr_emb)},
                 {"poep", std::move(poep)},
                 {"text", std::move(text)},
                 {"subset", std::move(subset)}}};
    }

    const EvaluationGroups& evaluations_;
    const std::vector<EvaluationGroup>& groups_;
    std::vector<std::string> names_;
    const EvaluationGroup* baseline_;
    const EvaluationGroup* smallest_;  ///< null: not said
    std::vector<Row> rows_;
};

FigureData retention(const FigureInputs& inputs, const FigureOptions& options) {
    const EvaluationGroups evaluations(inputs.evaluations, "retention", options.names);
    return Maker(evaluations, options).make();
}

}  // namespace

extern const Recipe kRetention{
    .name = "retention",
    .description =
        "results relative to --baseline's, against the parameters; "
        "a table with elasticity and compression",
    .needs = "evaluations, and --baseline NAME",
    .of_others = retention,
    .others = RecipeInputs::evaluations,
    .options = {"names", "task", "metric", "length", "baseline", "smallest"},
};

}  // namespace headscope::figures
