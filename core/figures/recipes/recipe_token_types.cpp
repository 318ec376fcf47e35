// SPDX-License-Identifier: GPL-3.0-or-later
// What NAtS-L's heads choose: the share of chunks that use softmax attention as heat maps layers x heads, texts and
// models side by side (NAtS-L, Fig. 5 and 8); of one layer the type of each chunk; of one head the types on the text.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/head_weights.h"
#include "core/figures/recipe.h"
#include "core/figures/token_chips.h"
#include "core/figures/token_types.h"

namespace headscope::figures {
namespace {

constexpr std::int64_t kMostTokens = 3000;  ///< of a text, some pages
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// One sequence of one file, with what is chosen of it.
struct Source {
    const store::AnalysisFile* file = nullptr;
    std::string name;   ///< the file's label
    std::string title;  ///< of its panel
    std::int64_t sequence = 0;
    std::vector<std::int64_t> sites;

    const store::AnalysisHeader& header() const { return file->header(); }
    const Site& site(std::int64_t i) const { return header().sites[static_cast<std::size_t>(i)]; }
    std::int64_t chunks(std::int64_t i) const {
        return file->site_done(sequence, i) ? chunk_count(header(), header().queries(sequence, site(i))) : 0;
    }
};

std::vector<std::int64_t> chosen_typed_sites(const store::AnalysisFile& file, const FigureOptions& options) {
    const auto typed = typed_sites(file.header());
    if (typed.empty()) {
        throw Error(ErrorCode::usage, "figure token-types of " + file_name(file),
                    "expected a file with token types: analyze writes them of a model with NAtS-L layers",
                    "found none");
    }
    std::vector<std::int64_t> sites;
    for (const auto site : chosen_sites(file, options))
        if (std::find(typed.begin(), typed.end(), site) != typed.end()) sites.push_back(site);
    if (sites.empty()) {
        throw Error(ErrorCode::usage, options.layer ? "--layer" : "figure token-types of " + file_name(file),
                    "expected a layer of " + file_name(file) + " that has token types and was measured",
                    options.layer ? "found " + std::to_string(*options.layer) : "found none");
    }
    for (const auto site : sites) check_head(file, site, options);
    return sites;
}

std::vector<Source> sources(Files files, const FigureOptions& options) {
    const auto names = file_labels(files);
    std::vector<Source> all;
    for (std::size_t f = 0; f < files.size(); ++f) {
        const auto sites = chosen_typed_sites(*files[f], options);
        const auto sequences = chosen_sequences(*files[f], options);
        for (const auto s : sequences) {
            Source one{files[f].get(), names[f], names[f], s, sites};
            if (sequences.size() > 1) one.title += ", sequence " + std::to_string(s);
            all.push_back(std::move(one));
        }
    }
    return all;
}

/// Rows are layers, columns heads.
struct Grid {
    std::string title;
    std::vector<std::int32_t> layers;
    std::int64_t columns = 0;
    std::vector<double> values;
};

/// Softmax fractions of one file's sequences, all of them: [S, n, H].
double fraction(const store::Values& values, std::int64_t s, std::int64_t site, std::int64_t head) {
    const auto& shape = values.shape;
    return values.data[static_cast<std::size_t>((s * shape[1] + site) * shape[2] + head)];
}

Grid grid_of(const std::vector<Source>& together, const store::Values& values) {
    const Source& first = together.front();
    Grid grid;
    grid.title = together.size() > 1 ? first.name + ", mean over " + std::to_string(together.size()) + " sequences"
                                     : first.title;
    for (const auto site : first.sites) {
        grid.layers.push_back(first.site(site).layer);
        grid.columns = std::max<std::int64_t>(grid.columns, first.site(site).heads);
    }
    for (const auto site : first.sites) {
        for (std::int64_t h = 0; h < grid.columns; ++h) {
            std::vector<double> each;
            for (const auto& one : together)
                if (h < one.site(site).heads) each.push_back(fraction(values, one.sequence, site, h));
            grid.values.push_back(moments(each).mean);
        }
    }
    return grid;
}

ColourScale types_scale(const char* label) {
    ColourScale scale;
    scale.label = label;
    return scale;
}

Panel fraction_panel(const Grid& grid, bool several) {
    Panel panel;
    if (several) panel.title = grid.title;
    HeatMap map;
    map.rows = std::ssize(grid.layers);
    map.columns = grid.columns;
    map.write_values = true;
    map.pooling = Pooling::mean;
    map.colours = types_scale("softmax fraction");
    for (const double value : grid.values) map.values.push_back(static_cast<float>(value));
    for (std::int64_t r = 0; r < map.rows; ++r)
        panel.y.ticks.push_back({static_cast<double>(r), std::to_string(grid.layers[static_cast<std::size_t>(r)])});
    for (std::int64_t c = 0; c < map.columns; ++c) panel.x.ticks.push_back({static_cast<double>(c), std::to_string(c)});
    panel.x.label = "head";
    panel.y.label = "layer";
    panel.content = std::move(map);
    return panel;
}

struct FractionRow {
    std::string file;
    std::int64_t sequence, layer, head, chunks;
    double fraction;
};

Table fractions_table(const std::vector<FractionRow>& rows) {
    std::vector<std::string> file;
    std::vector<std::int64_t> sequence, layer, head, chunks;
    std::vector<double> share;
    for (const auto& row : rows) {
        file.push_back(row.file);
        sequence.push_back(row.sequence);
        layer.push_back(row.layer);
        head.push_back(row.head);
        share.push_back(row.fraction);
        chunks.push_back(row.chunks);
    }
    return {{{"file", std::move(file)},
             {"sequence", std::move(sequence)},
             {"layer", std::move(layer)},
             {"head", std::move(head)},
             {"softmax_fraction", std::move(share)},
             {"chunks", std::move(chunks)}}};
}

FigureData fractions(const std::vector<Source>& all) {
    FigureData figure;
    std::vector<FractionRow> rows;
    std::int64_t layers = 1, heads = 1;
    std::vector<Grid> grids;
    bool means = false;
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = begin + 1;
        while (end < all.size() && all[end].file == all[begin].file && all[end].sequence > all[end - 1].sequence) ++end;
        const std::vector<Source> own(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                      all.begin() + static_cast<std::ptrdiff_t>(end));
        begin = end;
        const auto values = own.front().file->indicator("softmax_fraction");
        for (const auto& one : own) {
            for (const auto site : one.sites) {
                const std::int64_t chunks = one.chunks(site);
                for (std::int64_t h = 0; h < one.site(site).heads; ++h)
                    rows.push_back({one.name, one.sequence, one.site(site).layer, h, chunks,
                                    fraction(values, one.sequence, site, h)});
            }
        }
        if (std::ssize(own) > kMostTypePanels) {
            means = true;
            grids.push_back(grid_of(own, values));
        } else {
            for (const auto& one : own) grids.push_back(grid_of({one}, values));
        }
    }
    for (const auto& grid : grids) {
        figure.panels.push_back(fraction_panel(grid, grids.size() > 1));
        layers = std::max(layers, std::ssize(grid.layers));
        heads = std::max(heads, grid.columns);
    }
    figure.title = "Softmax fraction by layer and head";
    figure.columns = std::ssize(grids);
    figure.reflow = true;
    figure.narrowest_mm = 40;
    figure.panel_aspect =
        std::clamp(static_cast<double>(layers) / static_cast<double>(std::max<std::int64_t>(heads, 4)), 0.3, 1.5);
    if (grids.size() == 1) figure.widest_mm = std::max(40.0, static_cast<double>(heads) * 14);
    figure.shared_colours = true;
    const auto alike = [&](auto member) {
        return std::all_of(grids.begin(), grids.end(),
                           [&](const Grid& g) { return g.*member == grids.front().*member; });
    };
    figure.share_y = alike(&Grid::layers);
    figure.share_x = alike(&Grid::columns);
    figure.notes.emplace_back(
        "Share of a text's chunks that a head gives to softmax attention; the last chunk may be a part of one. "
        "Grey: none.");
    if (means) {
        figure.notes.push_back("Of more than " + std::to_string(kMostTypePanels) +
                               " sequences the mean is drawn; the table has each.");
    }
    figure.table = [rows = std::move(rows)] { return fractions_table(rows); };
    return figure;
}

/// A type as it is drawn: the share of softmax.
float shown_type(double type) {
    return type == 0 ? 1.0F : type == 1 ? 0.0F : kNone;
}

/// Chunks of heads [first, end) of a site in the table.
struct TypeRows {
    std::vector<std::string> file, type;
    std::vector<std::int64_t> sequence, layer, head, chunk, first_token;

    void add(const Source& one, std::int64_t site, std::int64_t h, const store::Values& types) {
        for (std::int64_t c = 0; c < one.chunks(site); ++c) {
            const double value = types.data[static_cast<std::size_t>(h * types.shape[1] + c)];
            file.push_back(one.name);
            sequence.push_back(one.sequence);
            layer.push_back(one.site(site).layer);
            head.push_back(h);
            chunk.push_back(c);
            first_token.push_back(c * one.header().type_chunk);
            type.emplace_back(value == 0 ? "softmax" : value == 1 ? "linear" : "");
        }
    }
    Table table() const {
        return {{{"file", file},
                 {"sequence", sequence},
                 {"layer", layer},
                 {"head", head},
                 {"chunk", chunk},
                 {"first_token", first_token},
                 {"type", type}}};
    }
};

store::Values types_of(const Source& one, std::int64_t site) {
    const auto found = one.file->token_types(one.sequence, site);
    if (!found)
        throw Error(ErrorCode::internal, "figure token-types", "expected types of a file that has them", "found none");
    return *found;
}

/// Heads x chunks.
Panel chunks_panel(const Source& one, std::int64_t site, const store::Values& types, bool several) {
    Panel panel;
    if (several) panel.title = one.title;
    HeatMap map;
    map.rows = one.site(site).heads;
    map.columns = std::max<std::int64_t>(1, one.chunks(site));
    map.pooling = Pooling::mean;
    map.colours = types_scale("softmax");
    for (std::int64_t h = 0; h < map.rows; ++h) {
        for (std::int64_t c = 0; c < map.columns; ++c)
            map.values.push_back(shown_type(types.data[static_cast<std::size_t>(h * types.shape[1] + c)]));
        panel.y.ticks.push_back({static_cast<double>(h), std::to_string(h)});
    }
    panel.x.label = "chunk of " + std::to_string(one.header().type_chunk) + " tokens";
    panel.y.label = "head";
    panel.content = std::move(map);
    return panel;
}

/// The text, each token in the colour of its chunk's type.
Panel text_panel(const Source& one, std::int64_t head, const store::Values& types, const FigureOptions& options,
                 bool several, std::vector<std::string>& notes) {
    const auto& tokens = one.header().sequences[static_cast<std::size_t>(one.sequence)];
    const auto count = std::ssize(tokens.ids);
    Region part = chosen_region(options, count, count);
    part.end_key = std::min(part.end_key, part.first_key + kMostTokens);
    const auto shown = types_of_tokens(types, head, one.header().type_chunk, count);
    Panel panel;
    if (several) panel.title = one.title;
    std::vector<float> values;
    for (const auto type : shown) values.push_back(shown_type(type));
    panel.content = text_block(tokens, part.first_key, part.end_key, values, -1, types_scale("softmax"));
    if (part.keys() < count) {
        notes.push_back((several ? one.title + ": t" : std::string("T")) + "okens " + std::to_string(part.first_key) +
                        " to " + std::to_string(part.end_key - 1) + " of " + std::to_string(count) +
                        "; --from-key and --to-key choose others.");
    }
    return panel;
}

FigureData types_of_layer(const std::vector<Source>& all, const FigureOptions& options) {
    if (std::ssize(all) > kMostTypePanels) {
        throw Error(ErrorCode::limit, "figure token-types",
                    "expected at most " + std::to_string(kMostTypePanels) + " texts with --layer",
                    "found " + std::to_string(all.size()));
    }
    FigureData figure;
    TypeRows rows;
    std::int64_t heads = 1;
    for (const auto& one : all) {
        const std::int64_t site = one.sites.front();
        const auto types = types_of(one, site);
        heads = std::max<std::int64_t>(heads, one.site(site).heads);
        if (options.head) {
            figure.panels.push_back(text_panel(one, *options.head, types, options, all.size() > 1, figure.notes));
            rows.add(one, site, *options.head, types);
            continue;
        }
        figure.panels.push_back(chunks_panel(one, site, types, all.size() > 1));
        for (std::int64_t h = 0; h < one.site(site).heads; ++h) rows.add(one, site, h, types);
    }
    figure.title = "Types of chunks, layer " + std::to_string(*options.layer);
    if (options.head) figure.title += ", head " + std::to_string(*options.head);
    if (!options.head) figure.panel_height_mm = std::clamp(static_cast<double>(heads) * 4, 12.0, 80.0);
    figure.shared_colours = true;
    figure.notes.emplace_back("1: the chunk uses softmax attention; 0: linear attention. Grey: not there.");
    figure.table = [rows = std::move(rows)] { return rows.table(); };
    return figure;
}

}  // namespace

FigureData token_types(Files files, const FigureOptions& options) {
    if (options.head && !options.layer)
        throw Error(ErrorCode::usage, "--head", "expected --layer with it", "found it alone");
    if (!options.head && asks_for_part(options))
        throw Error(ErrorCode::usage, "--from-key", "expected a part of the text of --layer and --head",
                    "found neither");
    const auto all = sources(files, options);
    FigureData figure = options.layer ? types_of_layer(all, options) : fractions(all);
    auto notes = source_notes(files, options);
    notes.insert(notes.end(), figure.notes.begin(), figure.notes.end());
    figure.notes = std::move(notes);
    return figure;
}

}  // namespace headscope::figures
