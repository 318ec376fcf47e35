// SPDX-License-Identifier: GPL-3.0-or-later
// Histograms of tensors' values: a panel a tensor, the counts on a logarithmic axis so that a few far values are seen
// beside the many near nought. Of several checkpoints: a column each, every row on the same axes.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/checkpoint/tensor_summary.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

using checkpoint::TensorSummary;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = 0.6;  ///< where the axis of counts begins: below one value

struct Number {
    const char* name;  ///< in the table of numbers
    const char* head;  ///< above a column
    double (*of)(const TensorSummary&);
    bool is_count;
};
constexpr std::array<Number, 9> kNumbers{
    {{"minimum", "min", [](const TensorSummary& s) { return s.minimum; }, false},
     {"maximum", "max", [](const TensorSummary& s) { return s.maximum; }, false},
     {"mean", "mean", [](const TensorSummary& s) { return s.mean; }, false},
     {"deviation", "deviation", [](const TensorSummary& s) { return s.deviation; }, false},
     {"norm", "L2 norm", [](const TensorSummary& s) { return s.norm; }, false},
     {"zeros", "zeros", [](const TensorSummary& s) { return static_cast<double>(s.zeros); }, true},
     {"nans", "NaN", [](const TensorSummary& s) { return static_cast<double>(s.nans); }, true},
     {"positive_infinities", "+inf", [](const TensorSummary& s) { return static_cast<double>(s.positive_infinities); },
      true},
     {"negative_infinities", "-inf", [](const TensorSummary& s) { return static_cast<double>(s.negative_infinities); },
      true}}};

template <class Name>
std::vector<std::string> distinct(const std::vector<TensorSpread>& all, Name name) {
    std::vector<std::string> names;
    for (const auto& one : all)
        if (std::find(names.begin(), names.end(), name(one)) == names.end()) names.push_back(name(one));
    return names;
}

/// Names come from files.
std::string shown(const std::string& name) {
    return escaped(name, 200);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const auto length : shape) text += (text.empty() ? "" : " × ") + std::to_string(length);
    return text.empty() ? "one number" : text;
}

/// The parts, with the dots behind them, that all of several names begin with.
std::string common_begin(const std::vector<std::string>& names) {
    if (names.size() < 2) return {};
    std::size_t same = names.front().size();
    for (const auto& name : names) {
        const auto [here, there] = std::mismatch(name.begin(), name.end(), names.front().begin(), names.front().end());
        same = std::min(same, static_cast<std::size_t>(here - name.begin()));
    }
    const std::size_t dot = same == 0 ? std::string::npos : names.front().rfind('.', same - 1);
    return dot == std::string::npos ? std::string() : names.front().substr(0, dot + 1);
}

class Maker {
public:
    explicit Maker(const FigureInputs& inputs)
        : all_(inputs.tensors),
          models_(distinct(all_, [](const auto& one) { return one.model; })),
          names_(distinct(all_, [](const auto& one) { return one.tensor; })),
          begin_(common_begin(names_)) {}

    FigureData make() const {
        FigureData figure;
        figure.title = all_.size() == 1 ? shown(all_.front().tensor) : "Values of tensors";
        for (const auto& name : names_) add_row(figure, name);
        figure.columns = several() ? std::ssize(models_) : std::min<std::int64_t>(3, std::ssize(names_));
        figure.reflow = !several();
        figure.share_y = several();
        figure.narrowest_mm = 38;
        figure.panel_aspect = figure.columns == 1 ? 0.5 : 0.75;
        for (std::size_t m = 0; several() && m < models_.size(); ++m) figure.column_labels.push_back(shown(models_[m]));
        figure.text_table = text_table();
        if (!begin_.empty()) figure.notes.push_back("Names begin with " + shown(begin_));
        figure.notes.push_back(several() ? "Rows share their axes." : "Of " + shown(models_.front()) + ".");
        figure.notes.emplace_back(
            "Bins of equal width from the smallest to the largest finite value, counts on a "
            "logarithmic axis; deviation: of all values (divisor n).");
        std::string none;
        for (const auto& number : kNumbers)
            if (!told(number)) none += (none.empty() ? "No " : ", ") + std::string(number.head);
        if (!none.empty()) figure.notes.push_back(none + ".");
        figure.table = [table = numbers()] { return table; };
        return figure;
    }

private:
    /// The distinguishing end of a name, which a narrow column must not cut.
    std::string short_name(const std::string& name) const { return shown(name.substr(begin_.size())); }

    bool several() const { return models_.size() > 1; }

    /// False for a count that is 0 in every tensor: it takes no room.
    bool told(const Number& number) const {
        return !number.is_count ||
               std::any_of(all_.begin(), all_.end(), [&](const auto& one) { return number.of(*one.numbers) > 0; });
    }

    const TensorSpread* find(const std::string& model, const std::string& tensor) const {
        for (const auto& one : all_)
            if (one.model == model && one.tensor == tensor) return &one;
        return nullptr;
    }

    void add_row(FigureData& figure, const std::string& name) const {
        double low = std::numeric_limits<double>::infinity(), high = -low, most = 1;
        for (const auto& model : models_) {
            const auto* one = find(model, name);
            if (one == nullptr || one->numbers->counts.empty()) continue;
            low = std::min(low, one->numbers->edges.front());
            high = std::max(high, one->numbers->edges.back());
            for (const auto count : one->numbers->counts) most = std::max(most, static_cast<double>(count));
        }
        if (!(low < high)) {  // nothing finite, or one value alone
            const double middle = std::isfinite(low) ? low : 0, reach = middle == 0 ? 1 : std::abs(middle) / 2;
            low = middle - reach;
            high = middle + reach;
        }
        const double margin = 0.02 * (high - low);
        for (const auto& model : models_) {
            Panel panel = this->panel(find(model, name), name);
            panel.x.range = {low - margin, high + margin};
            panel.y.range = {kLeast, 1.5 * most};
            figure.panels.push_back(std::move(panel));
        }
    }

    Panel panel(const TensorSpread* one, const std::string& name) const {
        Panel panel;
        panel.title = all_.size() == 1 ? std::string() : short_name(name);
        panel.x.label = "value";
        panel.y.label = "values in a bin";
        panel.y.scale = ScaleKind::logarithmic;
        Curve bars;
        bars.name = name;
        bars.filled = bars.thin = true;
        if (one != nullptr) {
            const auto& edges = one->numbers->edges;
            const auto& counts = one->numbers->counts;
            for (std::size_t bin = 0; bin < counts.size(); ++bin) {
                const double y = std::max(kLeast, static_cast<double>(counts[bin]));
                // A tensor of one value alone has one bin without a width.
                const double half = edges[bin] < edges[bin + 1] ? 0 : std::max(std::abs(edges[bin]), 1.0) / 100;
                bars.x.insert(bars.x.end(), {edges[bin] - half, edges[bin + 1] + half});
                bars.y.insert(bars.y.end(), {y, y});
            }
            if (!bars.x.empty()) {  // the sides of the outermost bars
                bars.x.insert(bars.x.begin(), bars.x.front());
                bars.y.insert(bars.y.begin(), kLeast);
                bars.x.push_back(bars.x.back());
                bars.y.push_back(kLeast);
            }
        }
        panel.content = Curves{{std::move(bars)}, {}};
        return panel;
    }

    TextTable text_table() const {
        TextTable table;
        table.header = {"tensor", "type, shape"};
        if (several()) table.header.insert(table.header.begin(), "checkpoint");
        table.words = table.header.size();
        for (const auto& number : kNumbers)
            if (told(number)) table.header.emplace_back(number.head);
        for (const auto& one : all_) {
            std::vector<std::string> cells{short_name(one.tensor), one.type + " " + shape_text(one.shape)};
            if (several()) cells.insert(cells.begin(), shown(one.model));
            for (const auto& number : kNumbers) {
                if (!told(number)) continue;
                const double value = number.of(*one.numbers);
                cells.push_back(number.is_count ? short_count(value) : short_number(value));
            }
            table.rows.push_back(std::move(cells));
        }
        return table;
    }

    /// A row a bin, and a row a number of the whole tensor.
    Table numbers() const {
        std::vector<std::string> model, tensor, quantity;
        std::vector<double> low, high, value;
        const auto add = [&](const TensorSpread& one, const std::string& what, double from, double to, double is) {
            model.push_back(one.model);
            tensor.push_back(one.tensor);
            quantity.push_back(what);
            low.push_back(from);
            high.push_back(to);
            value.push_back(is);
        };
        for (const auto& one : all_) {
            const auto& summary = *one.numbers;
            for (std::size_t bin = 0; bin < summary.counts.size(); ++bin)
                add(one, "values", summary.edges[bin], summary.edges[bin + 1],
                    static_cast<double>(summary.counts[bin]));
            for (const auto& number : kNumbers) add(one, number.name, kNone, kNone, number.of(summary));
        }
        return {{{"model", std::move(model)},
                 {"tensor", std::move(tensor)},
                 {"quantity", std::move(quantity)},
                 {"low", std::move(low)},
                 {"high", std::move(high)},
                 {"value", std::move(value)}}};
    }

    const std::vector<TensorSpread>& all_;
    std::vector<std::string> models_, names_;
    std::string begin_;  ///< of all names, where there are several: "model.layers."
};

FigureData tensors(const FigureInputs& inputs, const FigureOptions&) {
    return Maker(inputs).make();
}

}  // namespace

extern const Recipe kTensors{
    .name = "tensors",
    .description =
        "histograms of the values of a checkpoint's tensors, with "
        "their statistics",
    .needs = "checkpoints, and --tensor NAME",
    .of_others = tensors,
    .others = RecipeInputs::tensors,
    .options = {"tensor"},
};

}  // namespace headscope::figures
