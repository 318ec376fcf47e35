// SPDX-License-Identifier: GPL-3.0-or-later
// A continuation: the probability of each generated token, and by layer the entropy and the sink of the rows that led
// to it, means over heads; a table of the likeliest tokens.

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/figures/recipes/ask/ask_panels.h"
#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostListed = 40;  // rows of a table that a page takes

/// Steps of a text that have a token.
std::int64_t steps_of(const store::AskRecord& record, std::int64_t sequence) {
    const auto& tokens = record.table("/generate/token").values;
    const std::int64_t all = record.size_of("/step");
    std::int64_t steps = 0;
    while (steps < all && tokens[static_cast<std::size_t>(sequence * all + steps)] >= 0) ++steps;
    return steps;
}

/// Mean over heads by site (rows) and step (columns).
AskValues by_layer(const store::AskRecord& record, const char* path, std::int64_t sequence, std::int64_t steps) {
    const store::AskTable& table = record.table(path);
    const std::vector<std::int64_t> shape = record.shape_of(table);
    AskValues cells{{shape[2], steps}, {}, sequence};
    for (std::int64_t site = 0; site < shape[2]; ++site) {
        for (std::int64_t t = 0; t < steps; ++t) {
            double sum = 0, count = 0;
            for (std::int64_t h = 0; h < shape[3]; ++h) {
                const std::int64_t cell = ((sequence * shape[1] + t) * shape[2] + site) * shape[3] + h;
                const double value = table.values[static_cast<std::size_t>(cell)];
                if (std::isnan(value)) continue;
                sum += value;
                ++count;
            }
            cells.values.push_back(count > 0 ? sum / count : std::nan(""));
        }
    }
    return cells;
}

TextTable likeliest_of_steps(const store::AskRecord& record, std::int64_t sequence, std::int64_t steps) {
    const store::AskTable& ids = record.table("/generate/top_id");
    const auto& shares = record.table("/generate/top_probability").values;
    const std::vector<std::int64_t> shape = record.shape_of(ids);
    TextTable table{{"step", "token"}, {}};
    for (std::int64_t k = 0; k < shape[2]; ++k) table.header.push_back(k == 0 ? "likeliest" : std::to_string(k + 1));
    table.words = table.header.size();
    const auto& tokens = record.table("/generate/token").values;
    for (std::int64_t t = 0; t < steps; ++t) {
        std::vector<std::string> row{std::to_string(t),
                                     ask_word(record, tokens[static_cast<std::size_t>(sequence * shape[1] + t)])};
        for (std::int64_t k = 0; k < shape[2]; ++k) {
            const auto cell = static_cast<std::size_t>((sequence * shape[1] + t) * shape[2] + k);
            const bool there = ids.values[cell] >= 0;
            const auto percent = std::llround(100 * shares[cell]);
            row.push_back(there ? ask_word(record, ids.values[cell]) + " " + std::to_string(percent) + " %" : "");
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

FigureData generation(const FigureInputs& inputs, const FigureOptions& options) {
    const store::AskRecord& record = ask_record(inputs, "generation", "generate");
    FigureOptions one = options;
    one.sequence = options.sequence.value_or(0);
    const AskValues logs = ask_values(record, record.table("/generate/log_probability"), one);
    const std::int64_t steps = steps_of(record, logs.sequence);
    if (steps == 0)
        throw Error(ErrorCode::usage, "figure generation",
                    "expected generated tokens of text " + std::to_string(logs.sequence), "found none yet");
    std::vector<std::string> words;
    for (std::int64_t t = 0; t < steps; ++t)
        words.push_back(ask_word(
            record,
            record.table("/generate/token").values[static_cast<std::size_t>(logs.sequence * logs.shape[0] + t)]));
    FigureData figure;
    figure.title = "Generated tokens";
    Curve curve;
    curve.points = true;
    for (std::int64_t t = 0; t < steps; ++t) {
        curve.x.push_back(static_cast<double>(t));
        curve.y.push_back(std::exp(logs.values[static_cast<std::size_t>(t)]));
    }
    Panel chances;
    chances.title = "probability of the token";
    chances.content = Curves{{std::move(curve)}, {}};
    chances.x.label = "Step";
    chances.x.range = std::pair(-0.5, static_cast<double>(steps) - 0.5);
    chances.y.label = "Probability";
    chances.y.range = std::pair(0.0, 1.0);
    figure.panels.push_back(std::move(chances));
    for (const auto& [path, title, label] : {std::tuple("/generate/entropy", "entropy of the row", "nat"),
                                             std::tuple("/generate/sink", "weight of the first token", "share")}) {
        Panel panel = ask_panel(by_layer(record, path, logs.sequence, steps), label, std::nan(""));
        panel.title = std::string(title) + ", mean of heads";
        panel.x.label = "Generated token";
        panel.x.cell_labels = words;
        set_site_axis(panel.y, record);
        figure.panels.push_back(std::move(panel));
    }
    figure.columns = 1;
    figure.panel_aspect = 0.35;
    figure.notes = ask_notes(record, logs);
    const bool encodes =
        std::any_of(record.sites.begin(), record.sites.end(), [](const Site& site) { return site.stack == "encoder"; });
    figure.notes.emplace_back(encodes ? "The encoder reads the source once: its rows stay empty. The first token of "
                                        "cross-attention is the source's."
                                      : "Rows of recurrent layers have no weights and stay empty.");
    if (steps <= kMostListed) figure.text_table = likeliest_of_steps(record, logs.sequence, steps);
    figure.table = [table = ask_table(record, record.table("/generate/top_probability"))] { return table; };
    return figure;
}

}  // namespace

extern const Recipe kGeneration{
    .name = "generation",
    .description = "generated tokens: their probability, and entropy and sink of the rows that led to them",
    .needs = "ask generate",
    .of_others = generation,
    .others = RecipeInputs::asks,
    .options = {"sequence"},
};

}  // namespace headscope::figures
