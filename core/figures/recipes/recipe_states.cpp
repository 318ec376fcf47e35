// SPDX-License-Identifier: GPL-3.0-or-later
// Norms and variances of hidden states, queries, keys and values by position (Lazy Attention, Tables 4 to 7): a curve a
// layer, means over heads, or a curve a head with --layer. The token that draws most attention is marked.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/recipe.h"
#include "core/figures/token_text.h"
#include "core/figures/word_units.h"

namespace headscope::figures {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostPoints = 600;
constexpr std::size_t kWideLine = 120;  ///< points
constexpr std::size_t kMostTables = 2;  ///< beside each other on a page
constexpr std::size_t kTableRows = 15;  ///< as the paper's
constexpr double kDecades = 40;         ///< a logarithmic axis where values differ by more

struct Quantity {
    const char* kind;  ///< as stored: q, k, v, hidden
    const char* title;
};
constexpr std::array<Quantity, 4> kQuantities{
    {{"hidden", "Hidden state"}, {"q", "Query"}, {"k", "Key"}, {"v", "Value"}}};
constexpr std::array<const char*, 2> kMeasures{"norm", "variance"};
constexpr std::size_t kColumns = kQuantities.size() * kMeasures.size();

/// By position: a layer's mean over heads (head -1), one head, or a boundary between layers.
struct Series {
    std::size_t quantity = 0, measure = 0;
    std::int64_t layer = 0, head = -1;  ///< hidden: the layer that gave it; -1: what the first one reads
    std::size_t member = 0;             ///< its colour
    Subject subject;
    std::vector<double> value, deviation;
};

struct Model {
    std::string name;
    std::vector<Series> series;
    std::vector<std::string> members;  ///< names of what has a colour of its own
    std::vector<std::string> tokens;   ///< empty for means over sequences
    std::vector<std::int32_t> ids;     ///< theirs
    std::int64_t sink = -1, limit = 0, length = 0;
};

store::Values stored(const store::AnalysisFile& file, const Quantity& quantity, const char* measure, std::int64_t s,
                     std::int64_t site) {
    auto values = file.state(std::string(quantity.kind) + "_" + measure, s, site);
    if (!values) {
        throw Error(ErrorCode::usage, "figure states of " + file_name(file),
                    "expected a file with states: analyze with --record states", "found none recorded");
    }
    return std::move(*values);
}

/// Heads [first, end) of [H, L] values as one row: the mean of those that exist.
std::vector<double> mean_of_heads(const store::Values& values, std::int64_t first, std::int64_t end) {
    const std::int64_t length = values.shape.back();
    std::vector<double> row, here;
    for (std::int64_t i = 0; i < length; ++i) {
        here.clear();
        for (std::int64_t h = first; h < end; ++h)
            here.push_back(values.data[static_cast<std::size_t>(h * length + i)]);
        row.push_back(moments(here).mean);
    }
    return row;
}

/// Rows of several sequences as mean and deviation by position.
void set_values(Series& series, const std::vector<std::vector<double>>& rows) {
    std::size_t longest = 0;
    for (const auto& row : rows) longest = std::max(longest, row.size());
    std::vector<double> here;
    for (std::size_t i = 0; i < longest; ++i) {
        here.clear();
        for (const auto& row : rows) {
            if (i < row.size()) here.push_back(row[i]);
        }
        const Moments over = moments(here);
        series.value.push_back(over.mean);
        series.deviation.push_back(over.deviation);
    }
}

class Reader {
public:
    Reader(const store::AnalysisFile& file, const FigureOptions& options)
        : file_(file), options_(options), sequences_(chosen_sequences(file, options)) {}

    Model read(const std::string& name) {
        model_.name = name;
        for (const auto site : chosen_sites(file_, options_)) {
            check_head(file_, site, options_);
            if (file_.header().sites[static_cast<std::size_t>(site)].is_self()) sites_.push_back(site);
        }
        if (sites_.empty()) sites_ = chosen_sites(file_, options_);
        for (std::size_t q = 0; q < kQuantities.size(); ++q) {
            for (std::size_t m = 0; m < kMeasures.size(); ++m) q == 0 ? add_hidden(m) : add_heads(q, m);
        }
        name_members();
        find_sink();
        for (const auto s : sequences_)
            model_.length =
                std::max(model_.length, std::ssize(file_.header().sequences[static_cast<std::size_t>(s)].ids));
        const auto trained = file_.header().max_positions;
        if (trained > 0 && model_.length > trained) model_.limit = trained;
        if (sequences_.size() == 1) {
            const auto& first = file_.header().sites[static_cast<std::size_t>(sites_.front())];
            model_.tokens = stream_pieces(file_.header(), sequences_.front(), first.key_stream);
            model_.ids = stream_tokens(file_.header(), sequences_.front(), first.key_stream).ids;
        }
        return std::move(model_);
    }

private:
    void add(std::size_t quantity, std::size_t measure, std::int64_t layer, std::int64_t head, std::size_t member,
             Subject subject, const std::vector<std::vector<double>>& rows) {
        Series series{quantity, measure, layer, head, member, std::move(subject), {}, {}};
        set_values(series, rows);
        const bool there =
            std::any_of(series.value.begin(), series.value.end(), [](double value) { return !std::isnan(value); });
        if (there) model_.series.push_back(std::move(series));
    }

    void add_hidden(std::size_t measure) {
        std::vector<std::int64_t> boundaries;
        const auto count = file_.header().hidden_boundaries;
        if (options_.layer) {
            boundaries = {*options_.layer, *options_.layer + 1};
        } else {
            for (std::int64_t b = 0; b < count; ++b) boundaries.push_back(b);
        }
        const auto& sites = file_.header().sites;
        for (std::size_t k = 0; k < boundaries.size(); ++k) {
            if (boundaries[k] >= count) continue;
            std::vector<std::vector<double>> rows;
            for (const auto s : sequences_)
                rows.push_back(stored(file_, kQuantities[0], kMeasures[measure], s, boundaries[k]).data);
            // A layer's curves have its colour; what the first one reads comes before all.
            const auto site = std::find_if(sites_.begin(), sites_.end(), [&](std::int64_t one) {
                return sites[static_cast<std::size_t>(one)].layer == boundaries[k] - 1;
            });
            const bool input = boundaries[k] == 0;
            if (!options_.layer && !input && site == sites_.end()) continue;  // not measured
            const auto member = options_.layer ? k : (input ? 0 : static_cast<std::size_t>(site - sites_.begin()) + 1);
            const bool of_layer = !options_.layer && !input;
            add(0, measure, boundaries[k] - 1, -1, member, of_layer ? of_site(*site) : Subject{}, rows);
        }
    }

    void add_heads(std::size_t quantity, std::size_t measure) {
        for (std::size_t k = 0; k < sites_.size(); ++k) {
            const auto& site = file_.header().sites[static_cast<std::size_t>(sites_[k])];
            const std::int64_t heads = kQuantities[quantity].kind[0] == 'q' ? site.heads : site.key_value_heads;
            std::vector<store::Values> values;
            for (const auto s : sequences_)
                values.push_back(stored(file_, kQuantities[quantity], kMeasures[measure], s, sites_[k]));
            const auto rows = [&](std::int64_t first, std::int64_t end) {
                std::vector<std::vector<double>> all;
                for (const auto& one : values) all.push_back(mean_of_heads(one, first, end));
                return all;
            };
            const std::int64_t group = std::max<std::int64_t>(1, site.heads / std::max<std::int64_t>(1, heads));
            if (!options_.layer) {
                const auto h = options_.head ? *options_.head / group : 0;
                add(quantity, measure, site.layer, options_.head ? h : -1, k + 1, of_site(sites_[k]),
                    options_.head ? rows(h, h + 1) : rows(0, heads));
                continue;
            }
            // Heads that share a key have the colour of their first.
            for (std::int64_t h = 0; h < heads; ++h) {
                if (options_.head && *options_.head / group != h) continue;
                add(quantity, measure, site.layer, h, static_cast<std::size_t>(h * group), of_head(h * group, group),
                    rows(h, h + 1));
            }
        }
    }

    void name_members() {
        if (!options_.layer) {
            model_.members.emplace_back("input");
            for (const auto site : sites_) model_.members.push_back(site_title(file_, site));
            return;
        }
        std::int64_t heads = 1;
        for (const auto site : sites_)
            heads = std::max({heads, std::int64_t{file_.header().sites[static_cast<std::size_t>(site)].heads},
                              std::int64_t{file_.header().sites[static_cast<std::size_t>(site)].key_value_heads}});
        for (std::int64_t h = 0; h < heads; ++h) model_.members.push_back("head " + std::to_string(h));
    }

    /// The key that draws most weight, of all heads, sites and sequences together. Column mass is a mean over the
    /// queries that see a key: the last keys are seen by few.
    void find_sink() {
        std::map<std::int64_t, double> mass;
        for (const auto s : sequences_) {
            for (const auto site : sites_) {
                if (!file_.site_done(s, site)) continue;
                const auto values = file_.column_mass(s, site);
                const auto length = values.shape.back();
                const auto& about = file_.header().sites[static_cast<std::size_t>(site)];
                const auto queries = file_.header().queries(s, about);
                for (std::int64_t h = 0; h < about.heads; ++h) {
                    for (std::int64_t j = 0; j < length; ++j) {
                        const double value = values.data[static_cast<std::size_t>(h * length + j)];
                        const auto seen_by = static_cast<double>(about.causal ? queries - j : queries);
                        if (!std::isnan(value)) mass[j] += value * seen_by;
                    }
                }
            }
        }
        for (const auto& [key, value] : mass) {
            if (model_.sink < 0 || value > mass[model_.sink]) model_.sink = key;
        }
    }

    const store::AnalysisFile& file_;
    const FigureOptions& options_;
    std::vector<std::int64_t> sequences_, sites_;
    Model model_;
};

Table states_table(const std::vector<Model>& models, bool over_sequences) {
    std::vector<std::string> model, token;
    std::vector<std::int64_t> layer, head, position;
    std::array<std::vector<double>, kColumns> value, deviation;
    for (const auto& m : models) {
        std::map<std::pair<std::int64_t, std::int64_t>, std::array<const Series*, kColumns>> rows;
        std::size_t length = 0;
        for (const auto& series : m.series) {
            rows[{series.layer, series.head}][series.quantity * kMeasures.size() + series.measure] = &series;
            length = std::max(length, series.value.size());
        }
        for (const auto& [place, columns] : rows) {
            for (std::size_t i = 0; i < length; ++i) {
                model.push_back(m.name);
                layer.push_back(place.first);
                head.push_back(place.second);
                position.push_back(static_cast<std::int64_t>(i));
                token.push_back(i < m.tokens.size() ? visible_token(m.tokens[i]) : "");
                for (std::size_t c = 0; c < kColumns; ++c) {
                    const bool there = columns[c] != nullptr && i < columns[c]->value.size();
                    value[c].push_back(there ? columns[c]->value[i] : kNone);
                    deviation[c].push_back(there ? columns[c]->deviation[i] : kNone);
                }
            }
        }
    }
    Table table{{{"model", std::move(model)},
                 {"layer", std::move(layer)},
                 {"head", std::move(head)},
                 {"position", std::move(position)},
                 {"token", std::move(token)}}};
    for (std::size_t c = 0; c < kColumns; ++c) {
        const std::string name =
            std::string(kQuantities[c / kMeasures.size()].kind) + "_" + kMeasures[c % kMeasures.size()];
        table.columns.push_back({name, std::move(value[c])});
        if (over_sequences) table.columns.push_back({name + "_deviation", std::move(deviation[c])});
    }
    return table;
}

/// Value of one layer: the mean over heads at a position; hidden states: the layer's output.
double layer_value(const Model& model, std::size_t quantity, std::size_t measure, std::int64_t layer, std::size_t i) {
    std::vector<double> heads;
    for (const auto& series : model.series) {
        const bool own = series.quantity == quantity && series.measure == measure && series.layer == layer;
        if (own && i < series.value.size()) heads.push_back(series.value[i]);
    }
    return moments(heads).mean;
}

std::string cell(double value) {
    if (std::isnan(value) || std::abs(value) >= 1e4) return short_number(value, 5);
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", value);
    return text;
}

/// One layer in the form of the paper's tables, texts side by side: its first tokens, and the sink.
TextTable layer_table(const std::vector<Model>& models, std::int64_t layer) {
    TextTable table;
    table.words = 0;
    table.header = {"Idx"};
    std::set<std::size_t> positions;
    for (const auto& model : models) {
        for (std::size_t i = 0; i < std::min(kTableRows, model.tokens.size()); ++i) positions.insert(i);
        if (model.sink >= 0 && model.sink < std::ssize(model.tokens))
            positions.insert(static_cast<std::size_t>(model.sink));
        table.header.emplace_back("ID");
        table.more_words.push_back(table.header.size());
        table.header.emplace_back("Token");
        for (const char* measure : {"Norm", "Var"})
            for (const char* kind : {"Q-", "K-", "V-"}) table.header.push_back(std::string(kind) + measure);
        table.header.insert(table.header.end(), {"Norm", "Var"});
    }
    for (const std::size_t i : positions) {
        std::vector<std::string> row{std::to_string(i)};
        for (const auto& model : models) {
            const bool there = i < model.tokens.size() && i < model.ids.size();
            row.push_back(there ? std::to_string(model.ids[i]) : "");
            const bool sink = there && model.sink == static_cast<std::int64_t>(i);
            row.push_back(there ? visible_token(model.tokens[i]) + (sink ? " (sink)" : "") : "");
            for (std::size_t m = 0; m < kMeasures.size(); ++m)
                for (std::size_t q = 1; q < kQuantities.size(); ++q)
                    row.push_back(there ? cell(layer_value(model, q, m, layer, i)) : "");
            for (std::size_t m = 0; m < kMeasures.size(); ++m)
                row.push_back(there ? cell(layer_value(model, 0, m, layer, i)) : "");
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

Panel panel(const Model& model, std::size_t quantity, std::size_t measure, bool several_models, bool over_sequences,
            bool& thin) {
    Panel drawn;
    drawn.title = std::string(kQuantities[quantity].title) + (measure == 0 ? ", norm" : ", variance");
    if (several_models) drawn.title += " · " + model.name;
    drawn.x.label = "position";
    Curves curves;
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const auto& series : model.series) {
        if (series.quantity != quantity || series.measure != measure) continue;
        Curve curve;
        const bool boundary = quantity == 0 && model.members.front() != "input";
        curve.name = boundary ? (series.member == 0 ? "before" : "after") : model.members[series.member];
        curve.subject = series.subject;
        for (std::size_t i = 0; i < series.value.size(); ++i) curve.x.push_back(static_cast<double>(i));
        curve.y = series.value;
        if (over_sequences) curve.error = series.deviation;
        curve.thin = series.value.size() > kWideLine;
        colour_member(curve, series.member, boundary ? 2 : model.members.size());
        for (const double value : series.value) {
            if (!(value > 0)) continue;
            low = std::min(low, value);
            high = std::max(high, value);
        }
        thin |= series.value.size() > kMostPoints;
        curves.curves.push_back(thinned(std::move(curve), kMostPoints, over_sequences ? 12 : 0));
    }
    if (high > low * kDecades) drawn.y.scale = ScaleKind::logarithmic;
    // A little before the first position, where sinks are.
    drawn.x.range = std::pair(-0.012 * static_cast<double>(model.length),
                              static_cast<double>(std::max<std::int64_t>(1, model.length - 1)));
    if (model.sink >= 0) {
        const bool named = quantity == 0 && model.sink < std::ssize(model.tokens);
        drawn.markers.push_back(
            {true, static_cast<double>(model.sink),
             named ? "sink: " + visible_token(model.tokens[static_cast<std::size_t>(model.sink)]) : ""});
    }
    if (model.limit > 0) {
        drawn.markers.push_back(
            {true, static_cast<double>(model.limit), quantity == 1 ? "trained to " + std::to_string(model.limit) : ""});
    }
    drawn.content = std::move(curves);
    return drawn;
}

FigureData states(Files files, const FigureOptions& options) {
    const auto names = file_labels(files, options);
    std::vector<Model> models;
    for (std::size_t f = 0; f < files.size(); ++f) models.push_back(Reader(*files[f], options).read(names[f]));
    FigureData figure;
    figure.title = "Norms and variances by position";
    if (options.layer) figure.title += ", layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    bool thin = false;
    for (std::size_t q = 0; q < kQuantities.size(); ++q) {
        for (std::size_t f = 0; f < models.size(); ++f) {
            for (std::size_t m = 0; m < kMeasures.size(); ++m) {
                figure.panels.push_back(panel(models[f], q, m, models.size() > 1, options.all_sequences, thin));
                figure.panels.back().subject = of_analysis(f);
            }
        }
    }
    figure.columns = static_cast<std::int64_t>(kMeasures.size() * models.size());
    figure.reflow = true;
    figure.narrowest_mm = 34;
    figure.panel_aspect = 0.55;
    const Model* most = &models.front();
    for (const auto& model : models)
        if (model.members.size() > most->members.size()) most = &model;
    if (!(options.layer && options.head)) figure.legend = member_legend(most->members);
    figure.notes = source_notes(files, options);
    figure.notes.push_back(
        std::string(options.layer ? "One curve per head; keys and values have the color of the first query head that "
                                    "reads them. Hidden states before and after the layer have the first two colors."
                    : options.head
                        ? "Queries of the head, and the keys and values that it reads; hidden states are the "
                          "outputs of the layers."
                        : "Means over heads; hidden states are the outputs of the layers.") +
        " Queries and keys before rotary; variances with divisor size − 1." +
        (options.all_sequences ? " Bars: standard deviation over sequences." : ""));
    for (const auto& model : models) {
        if (model.sink < 0) continue;
        figure.notes.push_back((models.size() > 1 ? model.name + ": t" : std::string("T")) + "he dashed line at " +
                               std::to_string(model.sink) + " is the sink, the key that receives the most weight" +
                               (options.layer ? " in the layer." : " in all layers together."));
    }
    if (options.layer && !options.all_sequences && models.size() <= kMostTables) {
        figure.text_table = layer_table(models, *options.layer);
        std::string note =
            options.head ? "Table: the head, and the keys and values that it reads" : "Table: means over heads";
        note += "; the last two columns describe the output of the layer. The first " + std::to_string(kTableRows) +
                " tokens, and the sink.";
        if (models.size() > 1) note += " Left " + names[0] + ", right " + names[1] + ".";
        figure.notes.push_back(std::move(note));
    }
    if (thin)
        figure.notes.emplace_back(
            "Long curves show the smallest and largest value of each stretch; the CSV has all values.");
    figure.table = [models = std::move(models), over = options.all_sequences] { return states_table(models, over); };
    return figure;
}

}  // namespace

extern const Recipe kStates{
    .name = "states",
    .description =
        "norms and variances of queries, keys, values and hidden "
        "states by position",
    .needs = "states (analyze --record states)",
    .of_analyses = states,
    .options = {"layer", "head", "sequence", "names"},
};

}  // namespace headscope::figures
