// SPDX-License-Identifier: GPL-3.0-or-later
// Attention maps from recorded queries and keys, weights or logits: exact cells of a short text, pooled cells of a long
// one, by maximum unless the mean is asked for, so that a diagonal or a sink column one key wide never vanishes.
// Several files stand side by side; texts of several models are a grid, models in columns (Lazy Attention, Fig. 3:
// natural text above the repeated-token probe).

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/map_values.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"
#include "core/maps/map_reader.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostLabels = 400;  ///< no page has room for more tokens along a side
constexpr std::int64_t kShort = 256;       ///< up to here a square-root scale; the weights of longer texts need decades
constexpr double kLeastLogits = 1e-3;      ///< a head without scores has a scale all the same

struct Map {
    std::string model, site;
    bool cross = false, words = false;
    std::int64_t layer = 0, head = 0, rows = 0, columns = 0, queries = 0;
    Region region;
    std::vector<std::string> query_tokens, key_tokens;     ///< of the whole text, as read; empty for other streams
    std::vector<std::int32_t> query_regions, key_regions;  ///< of a pair, of all of them; else empty
    std::vector<float> values;                             ///< [rows, columns]; NaN: not allowed
    std::vector<float> ranks;                              ///< instead of them drawn; may be empty
    CellScale scale = CellScale::linear;
    MapValues kind = MapValues::weights;
    Pooling pooling = Pooling::maximum;
    std::vector<double> deviation;  ///< over sequences, of exact means; else empty
    double largest = 0;             ///< magnitude of the head's logits; norms: of those shown
    std::int64_t sequences = 1;     ///< more: means over them, of positions that hold other tokens in each
    std::int64_t limit = 0;         ///< trained positions; 0: none, or not passed

    bool exact() const { return rows == region.queries() && columns == region.keys(); }
    bool logits() const { return kind == MapValues::logits; }
    bool implicit() const { return kind == MapValues::implicit; }
    bool computed() const { return kind != MapValues::weights && !logits(); }
    /// Numbers of both signs.
    bool of_signs() const { return logits() || implicit(); }
    /// There is no end that all numbers keep.
    bool open() const { return of_signs() || of_norms(kind); }
};

Axis axis(const std::string& name, const std::vector<std::string>& tokens, std::int64_t first, std::int64_t end,
          std::int64_t cells) {
    Axis axis;
    axis.label = name;
    axis.first_cell = first;
    axis.cells_per_value = static_cast<double>(cells) / static_cast<double>(end - first);
    if (cells != end - first || cells > kMostLabels || end > std::ssize(tokens)) return axis;
    for (std::int64_t i = first; i < end; ++i)
        axis.cell_labels.push_back(visible_token(tokens[static_cast<std::size_t>(i)]));
    return axis;
}

/// `largest`: magnitude of the logits or norms of all maps.
ColourScale colours(const Map& map, double largest) {
    ColourScale colours;
    const std::string name = values_label(map.kind);
    colours.label = map.pooling == Pooling::mean && !map.exact() ? "mean " + name : name;
    if (map.scale == CellScale::row_rank) {
        colours.label = "rank of the " + values_word(map.kind) + " in its row";
        return colours;
    }
    if (map.scale == CellScale::square_root) colours.scale = ScaleKind::square_root;
    if (map.of_signs()) {
        colours.map = ColourMap::diverging;
        colours.maximum = map.implicit() ? (largest > 0 ? largest : 1) : std::max(largest, kLeastLogits);
        colours.minimum = -colours.maximum;
        if (map.scale == CellScale::logarithmic) colours.scale = ScaleKind::symmetric_log;
        return colours;
    }
    if (map.open() && largest > 0) colours.maximum = largest;
    if (map.scale == CellScale::logarithmic) {
        colours.scale = ScaleKind::logarithmic;
        colours.minimum = 1e-4 * colours.maximum;
    }
    return colours;
}

/// A line where a text of a pair begins, or inserted tokens do.
void mark_regions(Panel& panel, bool vertical, const std::vector<std::int32_t>& regions, std::int64_t first,
                  std::int64_t end) {
    for (std::int64_t i = first + 1; i < std::min(end, std::ssize(regions)); ++i) {
        const std::int32_t here = regions[static_cast<std::size_t>(i)];
        if (here == regions[static_cast<std::size_t>(i) - 1]) continue;
        panel.markers.push_back({vertical, static_cast<double>(i), here == 1 ? "A" : here == 2 ? "B" : ""});
    }
}

Panel panel(const Map& map, const std::string& title, double largest) {
    Panel drawn;
    drawn.title = title;
    const Region& part = map.region;
    const auto name = [&](const char* side, const char* text) {
        return std::string(side) + (map.words ? " word" : "") + (map.cross ? text : "");
    };
    drawn.x = axis(name("key", " (source)"), map.key_tokens, part.first_key, part.end_key, map.columns);
    drawn.y = axis(name("query", " (target)"), map.query_tokens, part.first_query, part.end_query, map.rows);
    HeatMap cells;
    cells.rows = map.rows;
    cells.columns = map.columns;
    cells.values = map.ranks.empty() ? map.values : map.ranks;
    cells.colours = colours(map, largest);
    cells.pooling = map.pooling == Pooling::mean ? Pooling::mean : map.of_signs() ? Pooling::extreme : Pooling::maximum;
    drawn.content = std::move(cells);
    mark_regions(drawn, true, map.key_regions, part.first_key, part.end_key);
    mark_regions(drawn, false, map.query_regions, part.first_query, part.end_query);
    if (map.limit > part.first_key && map.limit < part.end_key)
        drawn.markers.push_back({true, static_cast<double>(map.limit), "trained to " + std::to_string(map.limit)});
    if (map.limit > part.first_query && map.limit < part.end_query)
        drawn.markers.push_back({false, static_cast<double>(map.limit), ""});
    return drawn;
}

Table attention_table(const std::vector<Map>& maps) {
    std::vector<std::string> model, site, query_token, key_token;
    std::vector<std::int64_t> layer, head, query, key;
    std::vector<double> number, rank, deviation;
    const auto token = [](const std::vector<std::string>& tokens, std::int64_t at, bool exact) {
        return exact && at < std::ssize(tokens) ? visible_token(tokens[static_cast<std::size_t>(at)]) : std::string();
    };
    bool pooled = false, ranked = false, spread = false;
    for (const auto& map : maps) {
        const bool exact = map.exact();
        pooled |= !exact;
        ranked |= !map.ranks.empty();
        spread |= !map.deviation.empty();
        for (std::int64_t r = 0; r < map.rows; ++r) {
            for (std::int64_t c = 0; c < map.columns; ++c) {
                const auto at = static_cast<std::size_t>(r * map.columns + c);
                const float value = map.values[at];
                if (std::isnan(value)) continue;
                model.push_back(map.model);
                layer.push_back(map.layer);
                site.push_back(map.site);
                head.push_back(map.head);
                const std::int64_t q = map.region.query_of(r, map.rows), k = map.region.key_of(c, map.columns);
                query.push_back(q);
                key.push_back(k);
                query_token.push_back(token(map.query_tokens, q, exact));
                key_token.push_back(token(map.key_tokens, k, exact));
                number.push_back(value);
                if (!map.ranks.empty()) rank.push_back(map.ranks[at]);
                deviation.push_back(map.deviation.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                          : map.deviation[at]);
            }
        }
    }
    // The two branches of a layer have weights and coefficients.
    const bool alike =
        std::all_of(maps.begin(), maps.end(), [&](const Map& map) { return map.kind == maps.front().kind; });
    Table table{
        {{"model", std::move(model)},
         {"layer", std::move(layer)},
         {"site", std::move(site)},
         {"head", std::move(head)},
         {pooled ? "first_query" : "query", std::move(query)},
         {pooled ? "first_key" : "key", std::move(key)},
         {maps.front().words ? "query_word" : "query_token", std::move(query_token)},
         {maps.front().words ? "key_word" : "key_token", std::move(key_token)},
         {alike ? values_column(maps.front().kind, maps.front().pooling, pooled) : "value", std::move(number)}}};
    if (ranked) table.columns.push_back({"row_rank", std::move(rank)});
    if (spread) table.columns.push_back({"deviation", std::move(deviation)});
    return table;
}

/// Cells along a side: fewer for each of many maps.
std::int64_t side(std::int64_t positions, std::int64_t maps, std::int64_t most) {
    const std::int64_t share =
        maps <= 1 ? most : std::max<std::int64_t>(128, most / (maps <= 4 ? 2 : (maps <= 16 ? 4 : 8)));
    return std::min(positions, std::max<std::int64_t>(1, share));
}

std::string part_note(const std::vector<Map>& maps) {
    const Region& part = maps.front().region;
    const auto span = [](std::int64_t first, std::int64_t end, bool same) {
        return std::to_string(first) + (same ? " to " + std::to_string(end - 1) : " on");
    };
    // Texts of other lengths end elsewhere where no end was asked for.
    const bool queries =
        std::all_of(maps.begin(), maps.end(), [&](const Map& map) { return map.region.end_query == part.end_query; });
    const bool keys =
        std::all_of(maps.begin(), maps.end(), [&](const Map& map) { return map.region.end_key == part.end_key; });
    const std::string words = maps.front().words ? " (words)" : "";
    return "Queries " + span(part.first_query, part.end_query, queries) + ", keys " +
           span(part.first_key, part.end_key, keys) + words + ".";
}

/// What cells of several pairs show.
std::string pooling_note(const Map& map) {
    if (map.pooling == Pooling::mean)
        return map.logits() ? " Each cell shows the mean logit of the allowed pairs under it."
                            : " Each cell shows the mean " + values_word(map.kind) +
                                  " of the pairs under it; forbidden pairs count as 0.";
    if (map.kind == MapValues::rollout && map.queries > maps::Rollout::kWhole)
        return " Each cell shows the largest, over its keys, of the mean over its queries.";
    return map.of_signs() ? " Each cell shows the " + values_word(map.kind) + " of greatest magnitude under it."
                          : " Each cell shows the largest " + values_word(map.kind) + " of the pairs under it.";
}

std::string logit_scale(CellScale scale) {
    const std::string how = scale == CellScale::square_root   ? "by square root"
                            : scale == CellScale::logarithmic ? "logarithmic beyond ±1"
                                                              : "linear";
    return "Logits: scores before the normaliser, coloured from minus to plus the greatest magnitude, " + how + ".";
}

/// What the colours of recurrent layers' maps mean.
std::string implicit_note(const Map& map) {
    if (map.scale == CellScale::row_rank) return "";
    return std::string("Coefficients: coloured from minus to plus the greatest magnitude, ") +
           (map.scale == CellScale::square_root   ? "by square root."
            : map.scale == CellScale::logarithmic ? "logarithmic beyond ±1."
                                                  : "linear.");
}

/// What the colours of all maps of one kind mean.
std::string scale_note(const std::vector<Map>& maps) {
    const auto some = [&](CellScale scale) {
        return std::any_of(maps.begin(), maps.end(), [scale](const Map& map) { return map.scale == scale; });
    };
    const bool logits = maps.front().logits();
    const bool logarithmic = some(CellScale::logarithmic), square_root = some(CellScale::square_root);
    std::string how;
    if (some(CellScale::row_rank)) {
        how = "Colour by the rank of each " + values_word(maps.front().kind) +
              " among those shown of its query, from 0 (the least) to 1; ties in the middle.";
    } else if (maps.front().implicit()) {
        how = implicit_note(maps.front());
    } else if (logits) {
        how = logit_scale(maps.front().scale);
    } else {
        if (some(CellScale::linear)) how = "Linear colour scale.";
        if (square_root) {
            how = "Colour by the square root of the " + values_word(maps.front().kind) +
                  (logarithmic ? " up to " + std::to_string(kShort) + " tokens. " : std::string("."));
        }
        if (logarithmic)
            how += square_root ? "Beyond, logarithmic; smaller ones than the scale's end are drawn as its end."
                               : "Logarithmic colour scale; smaller ones than its end are drawn as its end.";
    }
    how += " Grey: not allowed by the mask.";
    if (std::any_of(maps.begin(), maps.end(), [](const Map& map) { return !map.exact(); }))
        how += pooling_note(maps.front());
    return how;
}

std::string title_of(MapValues values) {
    if (values == MapValues::rollout) return "Attention rollout";
    if (of_norms(values)) return of_layer(values) ? "Norm-based attention of all heads" : "Norm-based attention";
    return values == MapValues::logits ? "Attention logits" : "Attention";
}

/// Tokens of the longer side.
std::int64_t longest_side(std::span<const Map> maps) {
    std::int64_t longest = 0;
    for (const Map& map : maps) longest = std::max({longest, map.region.queries(), map.region.keys()});
    return longest;
}

/// by_length resolved: by `longest` tokens.
CellScale scale_of(const Map& map, CellScale asked, std::int64_t longest) {
    if (asked != CellScale::by_length) return asked;
    if (map.logits()) return CellScale::linear;
    if (map.implicit()) return CellScale::square_root;
    return longest > kShort ? CellScale::logarithmic : CellScale::square_root;
}

/// "head 3", "mean of the heads".
std::string head_text(std::int64_t head) {
    return head == kMeanOfHeads ? "mean of the heads" : "head " + std::to_string(head);
}

/// What each file is asked for: its own layer and head, where the options have one for each.
std::vector<FigureOptions> chosen_of_files(Files files, const FigureOptions& options) {
    const auto check = [&](const char* option, const std::vector<std::int64_t>& numbers) {
        if (numbers.empty() || numbers.size() == files.size()) return;
        throw Error(ErrorCode::usage, option,
                    "expected one for all files, or one each of the " + std::to_string(files.size()),
                    "found " + std::to_string(numbers.size()));
    };
    check("--layer", options.layers);
    check("--head", options.heads);
    std::vector<FigureOptions> chosen(files.size(), options);
    for (std::size_t f = 0; f < files.size(); ++f) {
        if (!options.layers.empty()) chosen[f].layer = options.layers[f];
        if (!options.heads.empty()) chosen[f].head = options.heads[f];
        check_one_map(chosen[f]);
        if (!chosen[f].layer) chosen[f].layer = f > 0 ? chosen[0].layer : first_layer_with_matrix(*files[f], chosen[f]);
    }
    return chosen;
}

/// The heads to draw of a site; kMeanOfHeads: their mean, or what is of the layer.
std::vector<std::int64_t> chosen_heads(const store::AnalysisFile& file, std::int64_t site,
                                       const FigureOptions& options) {
    if (of_layer(options.values) || options.head == kMeanOfHeads) return {kMeanOfHeads};
    check_head(file, site, options);
    if (options.head) return {*options.head};
    std::vector<std::int64_t> heads(
        static_cast<std::size_t>(file.header().sites[static_cast<std::size_t>(site)].heads));
    std::iota(heads.begin(), heads.end(), std::int64_t{0});
    return heads;
}

/// In which order files are drawn. Where several models have as many texts each, two or more, and a file one map:
/// models in columns, their texts in rows, in the order of the files. Else `models` is empty, and files come as given.
struct Grid {
    std::vector<std::size_t> order;
    std::vector<std::string> models;  ///< above the columns
};

Grid grid_of(Files files, const std::vector<std::string>& names, std::int64_t expected) {
    Grid grid;
    std::vector<std::vector<std::size_t>> models;
    const auto same = [&](std::size_t f, std::size_t other) {
        const auto &one = files[f]->header(), &two = files[other]->header();
        return one.model_name == two.model_name && one.model_sha256 == two.model_sha256;
    };
    for (std::size_t f = 0; f < files.size(); ++f) {
        grid.order.push_back(f);
        const auto model =
            std::find_if(models.begin(), models.end(), [&](const auto& known) { return same(f, known.front()); });
        if (model == models.end())
            models.push_back({f});
        else
            model->push_back(f);
    }
    const std::size_t texts = models.front().size();
    const bool alike = std::all_of(models.begin(), models.end(), [&](const auto& m) { return m.size() == texts; });
    if (models.size() < 2 || texts < 2 || !alike || expected != std::ssize(files)) return grid;
    grid.order.clear();
    for (std::size_t t = 0; t < texts; ++t)
        for (const auto& model : models) grid.order.push_back(model[t]);
    for (const auto& model : models) {
        const std::string& name = files[model.front()]->header().model_name;
        const auto others = std::count_if(models.begin(), models.end(), [&](const auto& other) {
            return files[other.front()]->header().model_name == name;
        });
        grid.models.push_back(others > 1 || name.empty() ? names[model.front()] : name);
    }
    return grid;
}

/// A text of one token again and again, but for what the tokenizer put before it and behind.
bool one_token(const std::vector<std::string>& tokens) {
    return tokens.size() > 4 && std::all_of(tokens.begin() + 1, tokens.end() - 1,
                                            [&](const std::string& token) { return token == tokens[1]; });
}

/// The recorded maps of one site: of one sequence, all heads at once, or of all sequences, head by head.
class Source {
public:
    Source(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options)
        : file_(file), site_(site), mean_(options.all_sequences && file.header().sequences.size() > 1) {
        sequence_ = options.all_sequences ? 0 : chosen_sequence(file, options);
        const bool implicit = file.header().sites[static_cast<std::size_t>(site)].has_implicit;
        const bool recorded =
            !implicit && (options.values == MapValues::weights || options.values == MapValues::logits);
        if (options.units == Units::words)
            read_words();
        else if (mean_ || options.head == kMeanOfHeads)
            check_recorded(file, sequence_, site, "attention");
        else if (recorded)
            recorded_ = recorded_map(file, sequence_, site, "attention");
    }

    /// The numbers of map.head and what they are about; `side`: cells for so many positions.
    void fill(Map& map, const FigureOptions& options, const std::function<std::int64_t(std::int64_t)>& side) const {
        if (words_)
            fill_words(map, options, side);
        else
            fill_pieces(map, options, side);
        if (!map.computed()) return;
        for (const float value : map.values)
            if (!std::isnan(value)) map.largest = std::max(map.largest, std::abs(static_cast<double>(value)));
    }

private:
    void fill_pieces(Map& map, const FigureOptions& options,
                     const std::function<std::int64_t(std::int64_t)>& side) const {
        const auto& about = file_.header().sites[static_cast<std::size_t>(site_)];
        const bool of_heads = options.head == kMeanOfHeads;
        const auto mean = of_heads
                              ? maps::read_mean_of_heads(file_, mean_ ? std::nullopt : std::optional(sequence_), site_)
                          : mean_ ? maps::read_mean_map(file_, site_, map.head)
                                  : nullptr;
        const auto computed =
            mean || recorded_ ? nullptr : computed_map(file_, sequence_, site_, map.head, map.kind, "attention");
        const std::int64_t queries = mean ? mean->queries() : computed ? computed->queries() : recorded_->queries;
        const std::int64_t keys = mean ? mean->keys() : computed ? computed->keys() : recorded_->keys;
        map.queries = queries;
        map.region = chosen_region(options, queries, keys);
        map.rows = side(map.region.queries());
        map.columns = side(map.region.keys());
        if (mean) {
            if (mean_) map.sequences = mean->sequences() / (of_heads ? about.heads : 1);
            fill_mean(map, *mean, !of_heads);
        }
        if (!mean_) {
            const auto regions = file_.header().regions(sequence_, about);
            map.query_regions.assign(regions.begin(), regions.end());
            map.key_regions = map.query_regions;
            map.query_tokens = stream_pieces(file_.header(), sequence_, about.query_stream);
            map.key_tokens = stream_pieces(file_.header(), sequence_, about.key_stream);
            if (computed)
                fill_computed(map, *computed);
            else if (!mean)
                map.values = map.exact() ? exact_values(*recorded_, map.head, map.region, map.kind)
                                         : pooled_values(*recorded_, map.head, map.region, map.rows, map.columns,
                                                         map.kind, map.pooling);
        }
        if (map.logits()) {
            for (const std::int64_t s : mean_ ? chosen_sequences(file_, options) : std::vector{sequence_})
                for (std::int64_t h = of_heads ? 0 : map.head; h < (of_heads ? about.heads : map.head + 1); ++h)
                    map.largest = std::max(map.largest, largest_logit(file_, s, site_, h));
        }
        const std::int64_t limit = file_.header().max_positions;
        if (limit > 0 && std::max(queries, keys) > limit) map.limit = limit;
    }

    static void fill_computed(Map& map, const maps::ValueMap& computed) {
        const Region& part = map.region;
        map.values = map.exact() ? computed.values({part.first_query, part.end_query, part.first_key, part.end_key})
                                 : pooled_values(computed, part, map.rows, map.columns, map.pooling);
    }

    void read_words() {
        const auto refuse = [](const char* expected, const char* found) {
            throw Error(ErrorCode::usage, "--units words", expected, found);
        };
        if (mean_) refuse("expected one sequence, for each has words of its own", "found all");
        words_.emplace(file_, sequence_, site_, "attention");
    }

    void fill_words(Map& map, const FigureOptions& options,
                    const std::function<std::int64_t(std::int64_t)>& side) const {
        const auto words = words_of(map.head);
        map.words = true;
        map.region = chosen_region(options, words->queries(), words->keys());
        map.rows = side(map.region.queries());
        map.columns = side(map.region.keys());
        if (!file_.header().regions(sequence_, file_.header().sites[static_cast<std::size_t>(site_)]).empty()) {
            map.query_regions = words_->queries.tokens.regions;
            map.key_regions = words_->keys.tokens.regions;
        }
        map.query_tokens = words_->queries.tokens.pieces;
        map.key_tokens = words_->keys.tokens.pieces;
        map.values = pooled_values(*words, map.region, map.rows, map.columns, map.kind, map.pooling);
    }

    std::shared_ptr<const maps::PairMap> words_of(std::int64_t head) const {
        if (head != kMeanOfHeads) return words_->map(head);
        std::vector<std::shared_ptr<const maps::PairMap>> heads;
        for (std::int64_t h = 0; h < file_.header().sites[static_cast<std::size_t>(site_)].heads; ++h)
            heads.push_back(words_->map(h));
        return std::make_shared<const maps::MeanMap>(std::move(heads));
    }

    /// `spread`: with the deviation over sequences.
    static void fill_mean(Map& map, const maps::MeanMap& mean, bool spread) {
        if (!map.exact()) {
            map.values = pooled_values(mean, map.region, map.rows, map.columns, map.kind, map.pooling);
            return;
        }
        const Region& part = map.region;
        for (const maps::PairReading& pair :
             mean.read({part.first_query, part.end_query, part.first_key, part.end_key})) {
            map.values.push_back(map.logits() ? pair.logit : pair.weight);
            if (!spread) continue;
            map.deviation.push_back(static_cast<double>(map.logits() ? pair.logit_deviation : pair.weight_deviation));
        }
    }

    const store::AnalysisFile& file_;
    std::int64_t site_, sequence_ = 0;
    bool mean_;
    std::optional<store::AnalysisFile::Map> recorded_;
    std::optional<SiteWords> words_;
};

}  // namespace

FigureData attention(Files files, const FigureOptions& options) {
    const auto chosen = chosen_of_files(files, options);
    const auto names = file_labels(files);
    const bool same_layer = options.layers.empty(), same_head = options.heads.empty();
    std::vector<Map> maps;
    std::vector<std::string> titles;
    std::int64_t expected = 0;
    for (std::size_t f = 0; f < files.size(); ++f)
        for (const auto site : chosen_sites(*files[f], chosen[f]))
            expected += std::ssize(chosen_heads(*files[f], site, chosen[f]));
    const Grid grid = grid_of(files, names, expected);
    for (const std::size_t f : grid.order) {
        const auto& file = *files[f];
        const auto sites = chosen_sites(file, chosen[f]);
        for (const auto site : sites) {
            const auto& about = file.header().sites[static_cast<std::size_t>(site)];
            const Source source(file, site, chosen[f]);
            for (const std::int64_t h : chosen_heads(file, site, chosen[f])) {
                Map map;
                map.model = names[f];
                map.site = site_label(file, site);
                map.cross = about.kind == "cross";
                map.layer = about.layer;
                map.head = h;
                map.kind = values_of_site(file, site, options.values, "attention");
                map.pooling = options.pooling;
                source.fill(map, chosen[f],
                            [&](std::int64_t positions) { return side(positions, expected, options.pixels); });
                std::string title = files.size() > 1 && grid.models.empty() ? names[f] : "";
                const auto add = [&title](const std::string& part) { title += (title.empty() ? "" : ", ") + part; };
                if (!same_layer) add("layer " + std::to_string(about.layer));
                // All of one layer, which the figure's title names.
                if (sites.size() > 1) add(about.branch.empty() ? about.kind : about.branch);
                if (!of_layer(options.values) && (!same_head || !options.head)) add(head_text(h));
                if (!grid.models.empty() && one_token(map.key_tokens)) add("one token repeated");
                titles.push_back(title);
                maps.push_back(std::move(map));
            }
        }
    }
    const std::int64_t longest = longest_side(maps);
    for (Map& map : maps) {
        map.scale = scale_of(map, options.scale, grid.models.empty() ? longest_side({&map, 1}) : longest);
        if (map.scale == CellScale::row_rank) map.ranks = row_ranks(map.values, map.rows, map.columns);
    }

    FigureData figure;
    figure.title = title_of(options.values) + (same_layer ? ", layer " + std::to_string(*chosen.front().layer) : "") +
                   (options.head ? ", " + head_text(*options.head) : "");
    double largest = 0;
    for (const auto& map : maps) largest = std::max(largest, map.largest);
    ColourScale zeros;  // one of all maps, for they may share their bar
    for (const auto& map : maps)
        if (map.kind == MapValues::weights && map.ranks.empty()) set_zero_apart(zeros, map.values);
    for (std::size_t i = 0; i < maps.size(); ++i) {
        figure.panels.push_back(panel(maps[i], titles[i], largest));
        ColourScale& scale = std::get<HeatMap>(figure.panels.back().content).colours;
        scale.zero_apart = zeros.zero_apart && scale.map == ColourMap::sequential && maps[i].ranks.empty();
    }
    const auto count = std::ssize(maps);
    figure.columns = count <= 3 ? count : (count <= 16 ? 4 : 8);
    figure.reflow = true;
    figure.narrowest_mm = count <= 3 ? 50 : (count <= 16 ? 26 : 18);
    if (!grid.models.empty()) {
        figure.columns = std::ssize(grid.models);
        figure.reflow = false;
        figure.column_labels = grid.models;
    }
    // Labels of one map serve another only where both show the same text in the same cells.
    figure.share_x = figure.share_y =
        count > 3 && std::all_of(maps.begin(), maps.end(), [&](const Map& map) {
            const Map& first = maps.front();
            return map.cross == first.cross && map.region.queries() == first.region.queries() &&
                   map.region.keys() == first.region.keys() && map.rows == first.rows && map.columns == first.columns &&
                   map.query_tokens == first.query_tokens && map.key_tokens == first.key_tokens;
        });
    figure.panel_aspect = std::clamp(
        static_cast<double>(maps.front().region.queries()) / static_cast<double>(maps.front().region.keys()), 0.3, 2.0);
    if (count == 1) figure.widest_mm = 150;
    // One scale serves all only where all have it: a short and a long text do not.
    figure.shared_colours = std::all_of(figure.panels.begin(), figure.panels.end(), [&](const Panel& p) {
        const ColourScale &own = std::get<HeatMap>(p.content).colours,
                          &first = std::get<HeatMap>(figure.panels.front().content).colours;
        return own.scale == first.scale && own.map == first.map;
    });
    figure.notes = source_notes(files, options);
    if (asks_for_part(options)) figure.notes.push_back(part_note(maps));
    if (std::any_of(maps.begin(), maps.end(), [](const Map& map) { return map.sequences > 1; }))
        figure.notes.push_back(
            "Mean over sequences, position by position: each pair's over those that are long enough.");
    if (const std::string note = definition_note(options.values); !note.empty()) figure.notes.push_back(note);
    const auto some_implicit = std::find_if(maps.begin(), maps.end(), [](const Map& map) { return map.implicit(); });
    if (some_implicit != maps.end()) figure.notes.push_back(definition_note(MapValues::implicit));
    if (options.units == Units::words) figure.notes.push_back(kWordsNote);
    if (std::any_of(maps.begin(), maps.end(), [](const Map& map) { return !map.key_regions.empty(); }))
        figure.notes.push_back("A pair of texts: lines where A, B and inserted tokens begin.");
    figure.notes.push_back(scale_note(maps));
    if (zeros.zero_apart) figure.notes.emplace_back("Weights that are exactly 0 have a colour of their own.");
    if (some_implicit != maps.end() && !maps.front().implicit()) figure.notes.push_back(implicit_note(*some_implicit));
    figure.table = [maps = std::move(maps)] { return attention_table(maps); };
    return figure;
}

}  // namespace headscope::figures
