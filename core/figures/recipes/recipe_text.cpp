// SPDX-License-Identifier: GPL-3.0-or-later
// The text itself, each token's background coloured by what a chosen token looks at, by who looks at a chosen token, by
// how much it is looked at, or by its loss: of one head, the mean of a layer's heads, or of all.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/figures/token_chips.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMostTokens = 3000;  ///< some pages; a part of a longer text can be chosen
constexpr double kDecades = 1e-4;           ///< a logarithmic scale's lower end against its upper one

/// One text and a value for each of its tokens.
struct Coloured {
    std::string model;
    std::shared_ptr<const store::SequenceTokens> tokens;  ///< the file's, or its words
    std::vector<double> values;
    std::vector<float> shown;  ///< what is drawn: the values, or their ranks
    std::int64_t first = 0, end = 0;
    std::int64_t chosen = -1;  ///< the token that looks or is looked at, where it is of this text
    std::string token;         ///< it as a reader would write it; empty: none
    bool implicit = false;     ///< coefficients with signs
};

TextColour colour_of(const FigureOptions& options) {
    if (options.colour != TextColour::automatic) return options.colour;
    if (options.query) return TextColour::weights;
    return options.key ? TextColour::lookers : TextColour::mass;
}

/// Some pair of the maps is chosen by its query or its key.
bool of_token(TextColour colour) {
    return colour == TextColour::weights || colour == TextColour::lookers;
}

/// That token. Throws Error (usage) where none was given.
std::int64_t chosen_token(const FigureOptions& options, TextColour colour) {
    const bool looks = colour == TextColour::weights;
    const auto& token = looks ? options.query : options.key;
    if (token) return *token;
    throw Error(ErrorCode::usage, "figure text",
                looks ? "expected --query N, the token that looks" : "expected --key N, the token that is looked at",
                "found none");
}

/// The chosen sites that read the same text as the first of them: those with weights, or where there are none,
/// recurrent ones, whose coefficients are no weights to take a mean with.
std::vector<std::int64_t> sites_of_one_text(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto& sites = file.header().sites;
    std::vector<std::int64_t> chosen;
    const auto all = chosen_sites(file, options);
    const bool implicit = of_token(colour_of(options)) && std::none_of(all.begin(), all.end(), [&](std::int64_t site) {
                              return sites[static_cast<std::size_t>(site)].has_matrix;
                          });
    for (const auto site : all) {
        const auto& here = sites[static_cast<std::size_t>(site)];
        if (!(implicit ? here.has_implicit : here.has_matrix)) continue;
        if (!chosen.empty()) {
            const auto& first = sites[static_cast<std::size_t>(chosen.front())];
            if (here.key_stream != first.key_stream || here.query_stream != first.query_stream) continue;
        }
        check_head(file, site, options);
        chosen.push_back(site);
    }
    if (chosen.empty()) {
        throw Error(ErrorCode::usage, "figure text of " + file_name(file), "expected a layer with an attention matrix",
                    "found one that mixes tokens without");
    }
    return chosen;
}

bool wanted(const FigureOptions& options, std::int64_t head) {
    return !options.head || *options.head == head;
}

/// Mean over heads and sites of [heads, keys] values.
class Mean {
public:
    explicit Mean(std::size_t keys) : sum_(keys, 0.0), count_(keys, 0) {}
    void add(std::size_t key, double value) {
        if (std::isnan(value)) return;
        sum_[key] += value;
        ++count_[key];
    }
    std::vector<double> values() const {
        std::vector<double> all(sum_.size(), kNone);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (count_[i] > 0) all[i] = sum_[i] / static_cast<double>(count_[i]);
        }
        return all;
    }

private:
    std::vector<double> sum_;
    std::vector<std::int64_t> count_;
};

/// The token's row or column of a map; throws Error (usage) where it has none.
template <class Read>
std::vector<float> line_of_token(const store::AnalysisFile& file, std::int64_t token, bool looks, std::int64_t queries,
                                 std::int64_t keys, const Read& read) {
    const std::int64_t tokens = looks ? queries : keys;
    if (token >= tokens) {
        throw Error(ErrorCode::usage, looks ? "--query" : "--key",
                    "expected 0 to " + std::to_string(tokens - 1) + " of " + file_name(file),
                    "found " + std::to_string(token));
    }
    return read(looks ? Region{token, token + 1, 0, keys} : Region{0, queries, token, token + 1});
}

/// A query's row of weights, norms or rollout, or a key's column; of one head, or the mean.
std::vector<double> weights_of_token(const store::AnalysisFile& file, std::int64_t s,
                                     const std::vector<std::int64_t>& sites, const FigureOptions& options,
                                     TextColour colour, std::size_t count) {
    const std::int64_t token = chosen_token(options, colour);
    const bool looks = colour == TextColour::weights;
    Mean mean(count);
    for (const auto site : sites) {
        const std::int64_t heads = file.header().sites[static_cast<std::size_t>(site)].heads;
        const auto add = [&](const std::vector<float>& line) {
            for (std::size_t i = 0; i < std::min(count, line.size()); ++i) mean.add(i, line[i]);
        };
        if (options.units == Units::words) {
            const SiteWords words(file, s, site, "text");
            for (std::int64_t h = 0; h < heads; ++h) {
                if (!wanted(options, h)) continue;
                const auto map = words.map(h);
                add(line_of_token(file, token, looks, map->queries(), map->keys(), [&](const Region& part) {
                    return map->values({part.first_query, part.end_query, part.first_key, part.end_key});
                }));
            }
            continue;
        }
        if (options.values == MapValues::weights) {
            const auto map = recorded_map(file, s, site, "text");
            for (std::int64_t h = 0; h < map.heads; ++h) {
                if (wanted(options, h))
                    add(line_of_token(file, token, looks, map.queries, map.keys,
                                      [&](const Region& part) { return exact_weights(map, h, part); }));
            }
            continue;
        }
        for (std::int64_t h = 0; h < (of_layer(options.values) ? 1 : heads); ++h) {
            if (!wanted(options, h)) continue;
            const auto map = computed_map(file, s, site, h, options.values, "text");
            add(line_of_token(file, token, looks, map->queries(), map->keys(), [&](const Region& part) {
                return map->values({part.first_query, part.end_query, part.first_key, part.end_key});
            }));
        }
    }
    return mean.values();
}

std::vector<double> mass_of_keys(const store::AnalysisFile& file, std::int64_t s,
                                 const std::vector<std::int64_t>& sites, const FigureOptions& options,
                                 std::size_t keys) {
    Mean mean(keys);
    for (const auto site : sites) {
        if (!file.site_done(s, site)) continue;
        const auto stored = file.column_mass(s, site);
        const auto length = static_cast<std::size_t>(stored.shape.back());
        const auto heads = file.header().sites[static_cast<std::size_t>(site)].heads;
        for (std::int64_t h = 0; h < heads; ++h) {
            for (std::size_t j = 0; wanted(options, h) && j < std::min(keys, length); ++j)
                mean.add(j, stored.data[static_cast<std::size_t>(h) * length + j]);
        }
    }
    return mean.values();
}

/// The loss that is stored at a token is that of predicting the next one; an encoder's is of the token itself.
std::vector<double> losses(const store::AnalysisFile& file, std::int64_t s, std::size_t count) {
    const auto stored = file.loss(s).data;
    std::vector<double> values(count, kNone);
    const std::size_t shift = output_kind(file.header()).next ? 1 : 0;
    for (std::size_t i = 0; i + shift < count && i < stored.size(); ++i) values[i + shift] = stored[i];
    if (std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
        throw Error(ErrorCode::usage, "figure text of " + file_name(file),
                    "expected a model that predicts tokens, and its last layer done", "found no losses");
    }
    return values;
}

/// The part that is drawn: what was asked for, else as much as some pages hold, with the chosen token where there is
/// one.
void choose_part(Coloured& text, const FigureOptions& options) {
    const auto count = std::ssize(text.tokens->ids);
    const Region part = chosen_region(options, count, count);
    text.first = part.first_key;
    text.end = part.end_key;
    if (text.end - text.first <= kMostTokens) return;
    if (options.from_key && options.to_key) {
        throw Error(ErrorCode::limit, "figure text", "expected at most " + std::to_string(kMostTokens) + " tokens",
                    "found " + std::to_string(text.end - text.first) + ": choose fewer with --from-key and --to-key");
    }
    if (options.to_key) {
        text.first = text.end - kMostTokens;
    } else {
        // What looks back stands behind the token, what is looked at before it.
        const bool behind = colour_of(options) == TextColour::lookers;
        if (text.chosen >= text.first + kMostTokens)
            text.first = behind ? std::min(text.chosen, text.end - kMostTokens) : text.chosen + 1 - kMostTokens;
        text.end = text.first + kMostTokens;
    }
}

Coloured read(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
    const auto s = chosen_sequence(file, options);
    Coloured text;
    text.model = name;
    const TextColour colour = colour_of(options);
    const bool words = options.units == Units::words;
    std::vector<std::int64_t> begins;  // of words
    const auto take = [&](const store::SequenceTokens& pieces) {
        text.tokens = {file.shared_header(), &pieces};
        if (words) {
            auto units = std::make_shared<WordUnits>(word_units(pieces));
            begins = units->begins;
            text.tokens = {units, &units->tokens};
        }
        return pieces.ids.size();
    };
    if (colour == TextColour::loss) {
        text.values = losses(file, s, take(file.header().output_sequences()[static_cast<std::size_t>(s)]));
    } else {
        auto sites = sites_of_one_text(file, options);
        // It is through all layers up to one: of no layer chosen, through all.
        if (options.values == MapValues::rollout) sites = {sites.back()};
        const auto& first = file.header().sites[static_cast<std::size_t>(sites.front())];
        // What a token looks at are keys, who looks at it are queries: of an encoder-decoder these are two texts.
        const bool lookers = colour == TextColour::lookers;
        const auto pieces = take(stream_tokens(file.header(), s, lookers ? first.query_stream : first.key_stream));
        const auto count = text.tokens->ids.size();
        if (of_token(colour)) {
            FigureOptions own = options;
            if (first.has_implicit) {
                own.values = values_of_site(file, sites.front(), options.values, "text");
                text.implicit = true;
            }
            text.values = weights_of_token(file, s, sites, own, colour, count);
            const std::int64_t token = chosen_token(options, colour);
            if (first.query_stream == first.key_stream) text.chosen = token;
            const auto& other = stream_tokens(file.header(), s, lookers ? first.key_stream : first.query_stream);
            const auto names = words ? word_units(other).tokens.pieces : other.pieces;
            if (token < std::ssize(names)) text.token = visible_token(names[static_cast<std::size_t>(token)]);
        } else {
            text.values = mass_of_keys(file, s, sites, options, pieces);
        }
    }
    if (words && !of_token(colour)) text.values = sums_of_words(text.values, begins);
    choose_part(text, options);
    for (const double value : text.values) text.shown.push_back(static_cast<float>(value));
    if (options.scale == CellScale::row_rank) {
        const std::vector<float> part(text.shown.begin() + text.first, text.shown.begin() + text.end);
        const auto ranks = row_ranks(part, 1, std::ssize(part));
        std::copy(ranks.begin(), ranks.end(), text.shown.begin() + text.first);
    }
    return text;
}

/// Of coefficients: from minus to plus the greatest magnitude shown.
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

}  // namespace

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
    for (std::size_t f = 0; f < files.size(); ++f) texts.push_back(read(*files[f], names[f], options));
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

}  // namespace headscope::figures
