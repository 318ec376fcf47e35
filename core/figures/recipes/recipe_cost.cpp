// SPDX-License-Identifier: GPL-3.0-or-later
// What mixers cost (Deconstructing Attention, Tables 5-8): curves of the papers' formulas against length, a panel a
// quantity, dots where it was measured; below them a table at one length.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/figures/evaluation_groups.h"
#include "core/figures/recipe.h"
#include "core/mixers/types/type.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostRows = 100'000;
constexpr double kAlike = 0.05;  ///< of a value: less than a line's width

struct Quantity {
    const char* title;
    const char* short_title;
    const char* column;
    bool bytes;
    double cost::CostNumbers::*paper;
    double cost::MeasuredMixer::*measured;
};
constexpr std::array<Quantity, 4> kQuantities{
    {{"Prefill", "prefill", "prefill_flops", false, &cost::CostNumbers::prefill, &cost::MeasuredMixer::prefill_flops},
     {"Decoding", "decode", "decode_flops", false, &cost::CostNumbers::decode, &cost::MeasuredMixer::decode_flops},
     {"Activations", "activations", "activation_bytes", true, &cost::CostNumbers::activation,
      &cost::MeasuredMixer::activation_bytes},
     {"Cache", "cache", "cache_bytes", true, &cost::CostNumbers::cache, &cost::MeasuredMixer::cache_bytes}}};

/// "1.23 T", "45 M"; "–" for NaN.
std::string amount_text(double value, bool bytes) {
    if (!std::isfinite(value)) return "–";
    constexpr std::array<const char*, 6> prefixes{"", "k", "M", "G", "T", "P"};
    std::size_t at = 0;
    for (; std::abs(value) >= 999.5 && at + 1 < prefixes.size(); ++at) value /= 1000;
    const std::string unit = std::string(prefixes[at]) + (bytes ? "B" : "");
    return short_number(value, 3) + (unit.empty() ? "" : " " + unit);
}

/// Powers of ten, every third with its prefix: 1 M, 1 G.
void set_amount_ticks(Axis& axis, const std::vector<double>& values, bool bytes) {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const double value : values) {
        if (!(value > 0) || !std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    axis.scale = ScaleKind::logarithmic;
    if (!(high > 0)) return;
    const int first = static_cast<int>(std::floor(std::log10(low))),
              last = static_cast<int>(std::ceil(std::log10(high)));
    const int step = last - first > 6 ? 2 : 1;
    const std::vector<double> within = last - first <= 2 ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
    for (int k = first; k <= last; k += step) {
        for (const double part : within)
            axis.ticks.push_back({part * std::pow(10.0, k), amount_text(part * std::pow(10.0, k), bytes)});
    }
    axis.range = std::pair(low / 1.5, high * 1.5);
}

class Maker {
public:
    Maker(const FigureInputs& inputs, const FigureOptions& options) : models_(inputs.models), options_(options) {
        std::size_t rows = 0;
        for (const auto& model : models_) rows += model.table->rows.size();
        if (rows == 0 || rows > kMostRows) {
            throw Error(ErrorCode::usage, "figure cost", "expected 1 to " + std::to_string(kMostRows) + " rows",
                        "found " + std::to_string(rows));
        }
        for (const auto& model : models_) {
            for (const auto& row : model.table->rows) {
                if (std::find(mixers_.begin(), mixers_.end(), row.mixer) == mixers_.end()) mixers_.push_back(row.mixer);
                measured_ |= row.measured.has_value();
            }
        }
    }

    FigureData make() {
        const bool several = models_.size() > 1;
        FigureData figure;
        figure.title = several ? "Cost of token mixing" : "Cost of token mixing in " + models_[0].name;
        for (const Quantity& quantity : kQuantities) {
            for (const auto& model : models_) figure.panels.push_back(panel(quantity, model, several));
        }
        figure.columns = several ? std::ssize(models_) : 2;
        figure.reflow = !several;
        figure.narrowest_mm = 24;
        figure.panel_aspect = 0.7;
        for (std::size_t i = 0; i < mixers_.size(); ++i)
            figure.legend.push_back({mixers::column_title_of(mixers_[i]), static_cast<int>(i), shade_of(i)});
        figure.text_table = text_table();
        notes(figure);
        figure.table = [table = numbers()] { return table; };
        return figure;
    }

private:
    double shade_of(std::size_t mixer) const {
        Curve curve;
        colour_member(curve, mixer, mixers_.size());
        return curve.shade;
    }

    Panel panel(const Quantity& quantity, const CostModel& model, bool several) const {
        Panel panel;
        panel.title = several ? std::string(quantity.title) + " · " + model.name : quantity.title;
        Curves curves;
        std::vector<double> values;
        std::vector<std::int64_t> lengths;
        for (std::size_t m = 0; m < mixers_.size(); ++m) {
            Curve line, dots;
            for (const auto& row : model.table->rows) {
                if (row.mixer != mixers_[m]) continue;
                if (std::find(lengths.begin(), lengths.end(), row.length) == lengths.end())
                    lengths.push_back(row.length);
                const double paper = row.paper.*quantity.paper;
                if (paper > 0) {
                    line.x.push_back(static_cast<double>(row.length));
                    line.y.push_back(paper);
                    values.push_back(paper);
                }
                const double here = row.measured ? *row.measured.*quantity.measured : kNone;
                if (!(here > 0)) continue;
                dots.x.push_back(static_cast<double>(row.length));
                dots.y.push_back(here);
                values.push_back(here);
            }
            for (Curve* curve : {&line, &dots}) {
                curve->name = mixers::column_title_of(mixers_[m]);
                colour_member(*curve, m, mixers_.size());
            }
            // Formulas of several mixers coincide: the later ones are drawn narrower, so that all are seen.
            line.width =
                2.2 - 1.6 * static_cast<double>(m) / static_cast<double>(std::max<std::size_t>(1, mixers_.size() - 1));
            dots.points = true;
            dots.dot = 0.8;
            if (!line.x.empty()) curves.curves.push_back(std::move(line));
            if (!dots.x.empty()) curves.curves.push_back(std::move(dots));
        }
        panel.content = std::move(curves);
        panel.x.label = "length (tokens)";
        panel.x.scale = ScaleKind::logarithmic;
        panel.y.label = quantity.bytes ? "bytes a layer" : "operations a layer";
        if (lengths.empty()) return panel;  // this model's table has no row
        std::sort(lengths.begin(), lengths.end());
        for (const auto length : lengths) panel.x.ticks.push_back({static_cast<double>(length), short_length(length)});
        panel.x.range =
            std::pair(static_cast<double>(lengths.front()) / 1.1, static_cast<double>(lengths.back()) * 1.1);
        set_amount_ticks(panel.y, values, quantity.bytes);
        const auto trained = model.training_length;
        if (trained > lengths.front() && trained < lengths.back()) {
            panel.markers.push_back({true, static_cast<double>(trained), "trained to " + std::to_string(trained)});
        }
        return panel;
    }

    static std::string short_length(std::int64_t length) {
        return length % 1024 == 0 ? std::to_string(length / 1024) + "k" : std::to_string(length);
    }

    /// The length asked for, else the training length where there is one, else the longest.
    std::int64_t table_length() const {
        const auto has = [&](std::int64_t length) {
            return std::any_of(models_[0].table->rows.begin(), models_[0].table->rows.end(),
                               [&](const auto& row) { return row.length == length; });
        };
        if (options_.length && has(*options_.length)) return *options_.length;
        if (options_.length) {
            throw Error(ErrorCode::usage, "--length", "expected a length of the table",
                        "found " + std::to_string(*options_.length));
        }
        if (has(models_[0].training_length)) return models_[0].training_length;
        std::int64_t longest = 0, longest_measured = 0;
        for (const auto& row : models_[0].table->rows) {
            longest = std::max(longest, row.length);
            if (row.measured) longest_measured = std::max(longest_measured, row.length);
        }
        return longest_measured > 0 ? longest_measured : longest;
    }

    TextTable text_table() const {
        TextTable table;
        const auto length = table_length();
        const bool several = models_.size() > 1;
        table.header = {std::to_string(length) + " tokens"};
        if (several) table.header.insert(table.header.begin(), "model");
        table.words = table.header.size();
        for (const Quantity& quantity : kQuantities) {
            table.header.emplace_back(quantity.short_title);
            if (measured_) table.header.emplace_back("here");
        }
        for (const auto& model : models_) {
            for (const auto& row : model.table->rows) {
                if (row.length != length) continue;
                std::vector<std::string> cells{mixers::column_title_of(row.mixer)};
                if (several) cells.insert(cells.begin(), model.name);
                for (const Quantity& quantity : kQuantities) {
                    cells.push_back(amount_text(row.paper.*quantity.paper, quantity.bytes));
                    if (!measured_) continue;
                    cells.push_back(
                        amount_text(row.measured ? *row.measured.*quantity.measured : kNone, quantity.bytes));
                }
                table.rows.push_back(std::move(cells));
            }
        }
        return table;
    }

    /// The formulas' values at all lengths of all models; NaN: none.
    std::vector<double> values_of(const Quantity& quantity, const std::string& mixer) const {
        std::vector<double> values;
        for (const auto& model : models_)
            for (const auto& row : model.table->rows)
                if (row.mixer == mixer) values.push_back(row.paper.*quantity.paper);
        return values;
    }

    /// "Standard, StaticEmbQK; MLP, Non-approximate": mixers whose lines coincide.
    std::string coinciding(const Quantity& quantity) const {
        const auto alike = [](const std::vector<double>& a, const std::vector<double>& b) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double one, double other) {
                return one > 0 && std::abs(one - other) <= kAlike * std::max(one, other);
            });
        };
        std::string text;
        std::vector<bool> told(mixers_.size(), false);
        for (std::size_t i = 0; i < mixers_.size(); ++i) {
            std::string group;
            for (std::size_t j = i + 1; j < mixers_.size(); ++j) {
                if (told[i] || told[j] || !alike(values_of(quantity, mixers_[i]), values_of(quantity, mixers_[j])))
                    continue;
                group += ", " + mixers::column_title_of(mixers_[j]);
                told[j] = true;
            }
            if (!group.empty()) text += (text.empty() ? "" : "; ") + mixers::column_title_of(mixers_[i]) + group;
        }
        return text;
    }

    std::string coinciding_note() const {
        std::vector<std::pair<std::string, std::string>> all;  // of quantities, which lines
        for (const Quantity& quantity : kQuantities) {
            const std::string lines = coinciding(quantity);
            if (lines.empty()) continue;
            const auto known =
                std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.second == lines; });
            if (known == all.end())
                all.emplace_back(quantity.short_title, lines);
            else
                known->first += std::string(", ") + quantity.short_title;
        }
        std::string note;
        for (const auto& [quantities, lines] : all)
            note += (note.empty() ? "Same curve for " : " For ") + quantities + ": " + lines + ".";
        return note;
    }

    void notes(FigureData& figure) const {
        if (const std::string note = coinciding_note(); !note.empty()) figure.notes.push_back(note);
        for (const auto& model : models_) {
            const auto& setting = model.table->setting;
            figure.notes.push_back(
                model.name + ": batch " + std::to_string(setting.batch) + ", hidden size " +
                std::to_string(setting.hidden) + ", " + std::to_string(setting.heads) + " heads, " +
                std::to_string(setting.bytes) + " bytes a number" +
                (setting.tensor_parallel > 1
                     ? ", activations shared by " + std::to_string(setting.tensor_parallel) + " machines."
                     : "."));
        }
        figure.notes.emplace_back(
            "Formulas of the papers: matrix products of one layer's token mixing, without its output projection.");
        if (measured_) {
            figure.notes.emplace_back(
                "Dots and columns \"here\": operations counted and tensor memory measured on this machine, in "
                "float32.");
        }
    }

    Table numbers() const {
        std::vector<std::string> model, mixer, quantity;
        std::vector<std::int64_t> length;
        std::vector<double> paper, here;
        for (const auto& m : models_) {
            for (const auto& row : m.table->rows) {
                for (const Quantity& q : kQuantities) {
                    model.push_back(m.name);
                    mixer.push_back(row.mixer);
                    length.push_back(row.length);
                    quantity.emplace_back(q.column);
                    paper.push_back(row.paper.*q.paper);
                    here.push_back(row.measured ? *row.measured.*q.measured : kNone);
                }
            }
        }
        return {{{"model", std::move(model)},
                 {"mixer", std::move(mixer)},
                 {"length", std::move(length)},
                 {"quantity", std::move(quantity)},
                 {"paper", std::move(paper)},
                 {"measured", std::move(here)}}};
    }

    const std::vector<CostModel>& models_;
    const FigureOptions& options_;
    std::vector<std::string> mixers_;
    bool measured_ = false;
};

FigureData cost(const FigureInputs& inputs, const FigureOptions& options) {
    if (options.cost_of != CostOf::mixers) return variant_costs(inputs, options);
    return Maker(inputs, options).make();
}

}  // namespace

extern const Recipe kCost{
    .name = "cost",
    .description =
        "operations and bytes of mixers against length by the "
        "papers' formulas, with a table and measured values",
    .needs = "a model's configuration: a checkpoint, an analysis or a run",
    .of_others = cost,
    .others = RecipeInputs::models,
    .options = {"length", "measure", "of", "mixers", "batch", "tensor-parallel", "bytes"},
};

}  // namespace headscope::figures
