// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/ask/ask_panels.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/figures/token_text.h"

namespace headscope::figures {

const store::AskRecord& ask_record(const FigureInputs& inputs, const std::string& figure, const std::string& tool) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::usage, "figure " + figure, "expected " + expected, "found " + found);
    };
    if (inputs.asks.size() != 1) refuse("one ask file", std::to_string(inputs.asks.size()));
    if (inputs.asks.front()->tool != tool)
        refuse("a file of headscope ask " + tool, "one of ask " + escaped(inputs.asks.front()->tool));
    return *inputs.asks.front();
}

AskValues ask_values(const store::AskRecord& record, const store::AskTable& table, const FigureOptions& options) {
    const std::vector<std::int64_t> shape = record.shape_of(table);
    const std::int64_t texts = shape.front();
    AskValues found;
    found.shape.assign(shape.begin() + 1, shape.end());
    const bool by_token =
        std::find(table.dimensions.begin(), table.dimensions.end(), "/token") != table.dimensions.end();
    if (options.sequence && (*options.sequence < 0 || *options.sequence >= texts))
        throw Error(ErrorCode::usage, "--sequence", "expected a text from 0 to " + std::to_string(texts - 1),
                    "found " + std::to_string(*options.sequence));
    found.sequence = options.sequence ? *options.sequence : texts == 1 || by_token ? 0 : -1;
    const std::size_t size = texts > 0 ? table.values.size() / static_cast<std::size_t>(texts) : 0;
    for (std::size_t i = 0; i < size; ++i) {
        double sum = 0, count = 0;
        for (std::int64_t s = 0; s < texts; ++s) {
            const double value = table.values[static_cast<std::size_t>(s) * size + i];
            if ((found.sequence >= 0 && s != found.sequence) || std::isnan(value)) continue;
            sum += value;
            ++count;
        }
        found.values.push_back(count > 0 ? sum / count : std::nan(""));
    }
    return found;
}

bool is_corpus_measure(const store::AskTable& table) {
    static const std::vector<std::string> heads{"/site", "/head"};
    return table.dimensions == heads && !table.whole && table.path.starts_with("/corpus/") &&
           !table.path.starts_with("/corpus/sum/");
}

store::AskTable ask_change(const store::AskRecord& record, const std::string& path, const std::string& baseline) {
    store::AskTable table = record.table(path);
    const std::vector<double>& unedited = record.table(baseline).values;
    const std::size_t size = unedited.empty() ? 0 : table.values.size() / unedited.size();
    for (std::size_t i = 0; i < table.values.size(); ++i) table.values[i] -= unedited[i / size];
    return table;
}

Panel ask_panel(const AskValues& cells, const std::string& label, double centre) {
    HeatMap map;
    map.rows = cells.shape.at(0);
    map.columns = cells.shape.size() > 1 ? cells.shape[1] : 1;
    double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
    for (const double value : cells.values) {
        map.values.push_back(static_cast<float>(value));
        if (std::isnan(value)) continue;
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
    }
    if (lowest > highest) lowest = highest = 0;
    map.colours.label = label;
    if (std::isnan(centre)) {
        map.colours.minimum = lowest;
        map.colours.maximum = highest > lowest ? highest : lowest + 1;
    } else {
        const double reach = std::max({std::abs(lowest - centre), std::abs(highest - centre), 1e-12});
        map.colours.map = ColourMap::diverging;
        map.colours.minimum = centre - reach;
        map.colours.maximum = centre + reach;
        map.pooling = Pooling::extreme;
    }
    Panel panel;
    panel.content = std::move(map);
    return panel;
}

void set_token_axis(Axis& axis, const store::SequenceTokens& text) {
    axis.label = "Position";
    for (const std::string& piece : text.pieces) axis.cell_labels.push_back(visible_token(piece));
}

void set_token_axis(Axis& axis, const store::AskRecord& record, std::int64_t sequence) {
    const store::SequenceTokens& text =
        record.sequences.at(static_cast<std::size_t>(std::max<std::int64_t>(0, sequence)));
    if (!text.target) return set_token_axis(axis, text);
    axis.label = "Position (source or target)";
}

void set_site_axis(Axis& axis, const store::AskRecord& record) {
    axis.label = "Layer";
    for (std::int64_t i = 0; i < std::ssize(record.sites); ++i)
        axis.ticks.push_back({static_cast<double>(i), site_label(std::span<const Site>(record.sites), i), of_site(i)});
}

void set_layer_axis(Axis& axis, std::int64_t layers, const std::string& label) {
    axis.label = label;
    const bool heads = label == "Head";
    for (std::int64_t i = 0; i < layers; ++i)
        axis.ticks.push_back({static_cast<double>(i), std::to_string(i), heads ? of_head(i) : Subject{}});
}

Subject of_layer(const store::AskRecord& record, std::int64_t layer) {
    Subject subject;
    for (std::int64_t i = 0; i < std::ssize(record.sites); ++i)
        if (record.sites[static_cast<std::size_t>(i)].layer == layer) subject.sites.push_back(i);
    return subject;
}

void set_layer_subjects(Axis& axis, const store::AskRecord& record) {
    for (std::size_t i = 0; i < axis.ticks.size(); ++i)
        axis.ticks[i].subject = of_layer(record, static_cast<std::int64_t>(i));
}

void set_layer_range(Axis& axis, std::int64_t layers) {
    set_layer_axis(axis, layers);
    axis.range = std::pair(-0.5, static_cast<double>(layers) - 0.5);
}

std::string ask_word(const store::AskRecord& record, double id) {
    const auto number = static_cast<std::int64_t>(id);
    const auto found = record.words.find(number);
    return found == record.words.end() ? "#" + std::to_string(number) : visible_token(found->second);
}

std::string ask_setting(const store::AskRecord& record, const std::string& name, const std::string& otherwise) {
    const nlohmann::json settings = nlohmann::json::parse(record.settings_json, nullptr, false);
    const bool stored = settings.is_object() && settings.contains(name) && settings[name].is_string();
    return stored ? settings[name].get<std::string>() : otherwise;
}

std::string metric_label(const store::AskRecord& record) {
    std::string metric = ask_setting(record, "metric", "metric");
    const bool in_nats = metric == "loss" || metric == "kl" || metric == "log_probability";
    std::replace(metric.begin(), metric.end(), '_', ' ');
    if (metric == "kl") metric = "KL divergence";
    return in_nats ? metric + ", nat" : metric;
}

std::vector<std::string> ask_notes(const store::AskRecord& record, const AskValues& values) {
    std::vector<std::string> notes;
    const auto texts = record.sequences.size();
    if (values.sequence < 0) {
        notes.push_back("Mean of " + std::to_string(texts) + " texts, " + record.model_name + ".");
    } else {
        const store::SequenceTokens& text = record.sequences.at(static_cast<std::size_t>(values.sequence));
        notes.push_back("Text " + std::to_string(values.sequence) + " (" + std::to_string(text.ids.size()) + " tokens" +
                        (text.target ? ", target of " + std::to_string(text.target->ids.size()) : std::string()) +
                        "), " + record.model_name + ".");
    }
    if (!record.complete) notes.emplace_back("Partial file: cells that are missing are not computed yet.");
    return notes;
}

Table ask_table(const store::AskRecord& record, const store::AskTable& table) {
    const std::vector<std::int64_t> shape = record.shape_of(table);
    std::vector<std::vector<std::int64_t>> index(shape.size());
    for (std::size_t cell = 0; cell < table.values.size(); ++cell) {
        auto rest = static_cast<std::int64_t>(cell);
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i].push_back(rest % shape[i]);
    }
    Table made;
    for (std::size_t i = 0; i < shape.size(); ++i)
        made.columns.push_back({table.dimensions[i].substr(1), std::move(index[i])});
    made.columns.push_back({"value", table.values});
    return made;
}

}  // namespace headscope::figures
