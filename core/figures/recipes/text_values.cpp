// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/recipes/text_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/map_values.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"
#include "core/maps/pooled_map.h"
#include "core/maps/rank_source.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMostTokens = 3000;  ///< some pages; a part of a longer text can be chosen

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
    return read(looks ? maps::Cells{token, token + 1, 0, keys} : maps::Cells{0, queries, token, token + 1});
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
                add(line_of_token(file, token, looks, map->queries(), map->keys(),
                                  [&](const maps::Cells& part) { return map->values(part); }));
            }
            continue;
        }
        if (options.values == MapValues::weights) {
            const auto map = recorded_map(file, s, site, "text");
            for (std::int64_t h = 0; h < map.heads; ++h) {
                if (wanted(options, h))
                    add(line_of_token(file, token, looks, map.queries, map.keys,
                                      [&](const maps::Cells& part) { return maps::exact_weights(map, h, part); }));
            }
            continue;
        }
        for (std::int64_t h = 0; h < (of_layer(options.values) ? 1 : heads); ++h) {
            if (!wanted(options, h)) continue;
            const auto map = computed_map(file, s, site, h, options.values, "text");
            add(line_of_token(file, token, looks, map->queries(), map->keys(),
                              [&](const maps::Cells& part) { return map->values(part); }));
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
    const maps::Cells part = chosen_region(options, count, count);
    text.first = part.k_begin;
    text.end = part.k_end;
    if (text.end - text.first <= kMostTokens) return;
    if (options.from_key && options.to_key) {
        throw Error(ErrorCode::limit, "figure text", "expected at most " + std::to_string(kMostTokens) + " tokens",
                    "found " + std::to_string(text.end - text.first) + ": choose fewer with --from-key and --to-key");
    }
    if (options.to_key) {
        text.first = text.end - kMostTokens;
    } else {
        // Queries that look at the token come after it, keys that it looks at before it.
        const bool behind = colour_of(options) == TextColour::lookers;
        if (text.chosen >= text.first + kMostTokens)
            text.first = behind ? std::min(text.chosen, text.end - kMostTokens) : text.chosen + 1 - kMostTokens;
        text.end = text.first + kMostTokens;
    }
}
}  // namespace

TextColour colour_of(const FigureOptions& options) {
    if (options.colour != TextColour::automatic) return options.colour;
    if (options.query) return TextColour::weights;
    return options.key ? TextColour::lookers : TextColour::mass;
}
bool of_token(TextColour colour) {
    return colour == TextColour::weights || colour == TextColour::lookers;
}
std::int64_t chosen_token(const FigureOptions& options, TextColour colour) {
    const bool looks = colour == TextColour::weights;
    const auto& token = looks ? options.query : options.key;
    if (token) return *token;
    throw Error(ErrorCode::usage, "figure text",
                looks ? "expected --query N, the token that looks" : "expected --key N, the token that is looked at",
                "found none");
}
Coloured read_coloured(const store::AnalysisFile& file, const std::string& name, const FigureOptions& options) {
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
        // Colors of a query's weights are on keys, of a key's weights on queries: two texts in an encoder-decoder.
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
        const auto ranks = maps::row_ranks(part, 1, std::ssize(part));
        std::copy(ranks.begin(), ranks.end(), text.shown.begin() + text.first);
    }
    return text;
}
}  // namespace headscope::figures
