// SPDX-License-Identifier: GPL-3.0-or-later
// The text itself, each token's background coloured by what a chosen token looks at, by who looks at a chosen token, by
// how much it is looked at, or by its loss: of one head, the mean of a layer's heads, or of all.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/figures/recipes/text_values.h"
#include "core/figures/token_chips.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"

namespace headscope::figures {
namespace {

constexpr double kDecades = 1e-4;  ///< a logarithmic scale's lower end against its upper one

/// Scale of coefficients: from minus to plus the greatest magnitude shown.
ColourScale coefficient_scale(const std::vector<Coloured>& texts, const FigureOptions& options) {
    ColourScale scale;
    if (options.scale == CellScale::row_rank) {
        scale.label = "rank of the coefficient in the text";
        return scale;
    }
    scale.label = values_word(MapValues::implicit);
    scale.map = ColourMap::diverging;
    scale.maximum = 0;
    for (const auto& text : texts) {
        for (auto i = text.first; i < text.end; ++i) {
            const double size = std::abs(static_cast<double>(text.shown[static_cast<std::size_t>(i)]));
            if (!std::isnan(size)) scale.maximum = std::max(scale.maximum, size);
        }
    }
    if (scale.maximum == 0 || options.range == ColourRange::one) scale.maximum = 1;
    scale.minimum = -scale.maximum;
    if (options.scale == CellScale::by_length || options.scale == CellScale::square_root)
        scale.scale = ScaleKind::square_root;
    if (options.scale == CellScale::logarithmic) scale.scale = ScaleKind::symmetric_log;
    return scale;
}

/// One scale for all texts of the figure.
ColourScale scale_of(const std::vector<Coloured>& texts, const FigureOptions& options) {
    ColourScale scale;
    const TextColour colour = colour_of(options);
    if (std::any_of(texts.begin(), texts.end(), [](const Coloured& text) { return text.implicit; })) {
        return coefficient_scale(texts, options);
    }
    if (colour == TextColour::loss && options.range == ColourRange::one) {
        throw Error(ErrorCode::usage, "--range", "expected largest, for losses do not end at 1", "found one");
    }
    scale.label = colour == TextColour::loss   ? "loss (nats)"
                  : colour == TextColour::mass ? "column mass"
                                               : values_word(options.values);
    if (of_norms(options.values) && options.range == ColourRange::one)
        throw Error(ErrorCode::usage, "--range", "expected largest, for norms do not end at 1", "found one");
    if (options.scale == CellScale::row_rank) {
        scale.label = "rank of the " + scale.label + " in the text";
        return scale;
    }
    float most = 0;
    for (const auto& text : texts) {
        for (auto i = text.first; i < text.end; ++i) {
            const float value = text.shown[static_cast<std::size_t>(i)];
            if (!std::isnan(value)) most = std::max(most, value);
        }
    }
    scale.maximum = most > 0 && options.range == ColourRange::largest ? most : 1;
    const bool square_root = options.scale == CellScale::square_root ||
                             (options.scale == CellScale::by_length && colour != TextColour::loss);
    if (square_root) scale.scale = ScaleKind::square_root;
    if (options.scale == CellScale::logarithmic) {
        scale.scale = ScaleKind::logarithmic;
        scale.minimum = scale.maximum * kDecades;
    }
    if (of_token(colour) && options.values == MapValues::weights) {
        for (const auto& text : texts)
            set_zero_apart(scale, std::span(text.shown)
                                      .subspan(static_cast<std::size_t>(text.first),
                                               static_cast<std::size_t>(text.end - text.first)));
    }
    return scale;
}

struct Row {
    std::string model, token;
    std::int64_t position;
    double value, shown;
};

Table text_table(const std::vector<Row>& rows, const std::string& name, bool ranks) {
    std::vector<std::string> model, token;
    std::vector<std::int64_t> position;
    std::vector<double> value, shown;
    for (const auto& row : rows) {
        model.push_back(row.model);
        token.push_back(row.token);
        position.push_back(row.position);
        value.push_back(row.value);
        shown.push_back(row.shown);
    }
    Table table{{{"model", std::move(model)},
                 {"position", std::move(position)},
                 {"token", std::move(token)},
                 {name, std::move(value)}}};
    if (ranks) table.columns.push_back({"rank", std::move(shown)});
    return table;
}

std::string head_words(const FigureOptions& options, const std::string& layer) {
    return options.head ? "head " + std::to_string(*options.head) + " of " + layer : "mean over the heads of " + layer;
}

std::string heads_note(const store::AnalysisFile& file, const FigureOptions& options) {
    std::string layer = options.layer ? chosen_title(file, options) : "every layer";
    if (!options.layer && options.tower == Tower::encoder) layer += " of the encoder";
    if (!options.layer && options.tower == Tower::decoder) layer += " of the decoder";
    if (!options.layer && options.tower == Tower::cross) layer += ", cross-attention";
    if (options.values == MapValues::rollout)
        return std::string("rollout through ") + (options.layer ? "the layers up to " : "") + layer;
    if (options.values == MapValues::layer_norms) return "norms of all heads together of " + layer;
    if (options.values == MapValues::norms) return "norms, " + head_words(options, layer);
    return head_words(options, layer);
}

std::string title_of(const store::AnalysisFile& file, const std::vector<Coloured>& texts,
                     const FigureOptions& options) {
    switch (colour_of(options)) {
        case TextColour::loss:
            return "Loss of each token";
        case TextColour::mass:
            return "Which tokens are looked at, " + heads_note(file, options);
        default:
            break;
    }
    const bool looks = colour_of(options) == TextColour::weights;
    const std::string& piece = texts.front().token;
    const std::string token =
        std::to_string(chosen_token(options, colour_of(options))) + (piece.empty() ? "" : " “" + piece + "”");
    return (looks ? "What token " + token + " looks at, " : "Who looks at token " + token + ", ") +
           heads_note(file, options);
}

std::string scale_note(const ColourScale& scale, const FigureOptions& options) {
    std::string note = options.scale == CellScale::row_rank    ? "Colors show the rank among the tokens shown."
                       : scale.scale == ScaleKind::square_root ? "Square-root color scale."
                       : scale.scale == ScaleKind::logarithmic
                           ? "Logarithmic color scale; " + smallest_note("values", scale.minimum)
                           : "Linear color scale.";
    if (colour_of(options) == TextColour::mass)
        note += " Column mass: the mean weight that a token receives from the queries that can attend to it.";
    if (colour_of(options) == TextColour::weights) note += " Framed: the query; no color: masked for it.";
    if (colour_of(options) == TextColour::lookers)
        note += " Framed: the key; no color: the key is masked for that token.";
    if (scale.zero_apart) note += " Weights that are exactly 0 have their own color.";
    return note +
           " Outlined: tokens that are not in the text. Bytes of one character stand together, each with its "
           "own colour.";
}

FigureData text(Files files, const FigureOptions& options) {
    const TextColour chosen = colour_of(options);
    check_one_map(options);
    if (options.values == MapValues::logits)
        throw Error(ErrorCode::usage, "--values", "expected weights, norms, layer-norms or rollout", "found scores");
    if (options.values != MapValues::weights && !of_token(chosen)) {
        throw Error(ErrorCode::usage, "--values", "expected weights where no --query or --key is chosen",
                    "found " + values_word(options.values));
    }
    const auto names = file_labels(files, options);
    std::vector<Coloured> texts;
    for (std::size_t f = 0; f < files.size(); ++f) texts.push_back(read_coloured(*files[f], names[f], options));
    const ColourScale scale = scale_of(texts, options);
    FigureData figure;
    figure.title = title_of(*files.front(), texts, options);
    figure.notes = source_notes(files, options);
    std::vector<Row> rows;
    for (const auto& coloured : texts) {
        Panel panel;
        if (texts.size() > 1) panel.title = coloured.model;
        panel.content =
            text_block(*coloured.tokens, coloured.first, coloured.end, coloured.shown, coloured.chosen, scale);
        figure.panels.push_back(std::move(panel));
        const auto count = std::ssize(coloured.tokens->ids);
        if (coloured.end - coloured.first < count) {
            figure.notes.push_back((texts.size() > 1 ? coloured.model + ": t" : std::string("T")) + "okens " +
                                   std::to_string(coloured.first) + " to " + std::to_string(coloured.end - 1) + " of " +
                                   std::to_string(count) + "; --from-key and --to-key select others.");
        }
        for (auto i = coloured.first; i < coloured.end; ++i) {
            const auto at = static_cast<std::size_t>(i);
            rows.push_back({coloured.model, visible_token(coloured.tokens->pieces[at]), i, coloured.values[at],
                            coloured.shown[at]});
        }
    }
    if (const std::string note = definition_note(options.values); !note.empty()) figure.notes.push_back(note);
    if (std::any_of(texts.begin(), texts.end(), [](const Coloured& text) { return text.implicit; }))
        figure.notes.push_back(definition_note(MapValues::implicit));
    if (options.units == Units::words) {
        figure.notes.push_back(of_token(colour_of(options)) ? kWordsNote
                                                            : "Words in place of pieces: their values summed.");
    }
    figure.notes.push_back(scale_note(scale, options));
    figure.shared_colours = true;
    const std::string name = chosen == TextColour::loss   ? "loss"
                             : chosen == TextColour::mass ? "column_mass"
                                                          : values_word(options.values);
    figure.table = [rows = std::move(rows), name, ranks = options.scale == CellScale::row_rank] {
        return text_table(rows, name, ranks);
    };
    return figure;
}

}  // namespace

extern const Recipe kText{
    .name = "text",
    .description =
        "the text, colored by the weights of --query or to --key, "
        "by the weight that tokens receive, or by loss",
    .needs = "column mass or loss; --query: maps (analyze --record maps)",
    .of_analyses = text,
    .options = {"layer", "head", "sequence", "names", "scale", "values", "units", "tower", "from-key", "to-key",
                "query", "key", "colour", "range"},
};

}  // namespace headscope::figures
