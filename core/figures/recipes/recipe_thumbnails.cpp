// SPDX-License-Identifier: GPL-3.0-or-later
// Every head of every layer as a small attention map, from the stored block means or maxima.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/figures/recipe.h"

namespace headscope::figures {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
/// Cells of the whole figure: as many as 180 mm by 180 mm show at 600 dpi is far more than a reader sees, and a file
/// with 48 x 64 heads of 128 x 128 cells would hold 50 million.
constexpr std::int64_t kMostCells = 6'000'000;

struct Tile {
    std::int64_t layer = 0, head = 0;
    std::string site, title;
    std::int64_t rows = 0, columns = 0;
    std::vector<float> values;  ///< [rows, columns]; NaN where the mask hides the whole block
    double highest = 0;         ///< of them; 0: there are none
    bool implicit = false;      ///< coefficients of both signs; else weights
    bool zeros = false;         ///< set apart from small weights
};

/// Blocks of a causal map that lie wholly above the diagonal hold no allowed pair: drawn as none, not as zero.
void hide_future(Tile& tile, const Site& site) {
    if (!site.causal || !site.is_self()) return;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
        for (std::int64_t c = r + 1; c < tile.columns; ++c)
            tile.values[static_cast<std::size_t>(r * tile.columns + c)] = kNone;
    }
}

Tile shrunk(const Tile& tile, std::int64_t most, bool maximum) {
    const std::int64_t rows = std::min(tile.rows, most), columns = std::min(tile.columns, most);
    if (rows == tile.rows && columns == tile.columns) return tile;
    Tile small{tile.layer,
               tile.head,
               tile.site,
               tile.title,
               rows,
               columns,
               std::vector<float>(static_cast<std::size_t>(rows * columns), kNone),
               tile.highest,
               tile.implicit,
               tile.zeros};
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0;
            float largest = 0;
            int count = 0;
            for (std::int64_t y = r * tile.rows / rows; y < ((r + 1) * tile.rows + rows - 1) / rows; ++y) {
                for (std::int64_t x = c * tile.columns / columns; x < ((c + 1) * tile.columns + columns - 1) / columns;
                     ++x) {
                    const float value = tile.values[static_cast<std::size_t>(y * tile.columns + x)];
                    if (std::isnan(value)) continue;
                    if (count == 0 || std::abs(value) > std::abs(largest)) largest = value;
                    sum += value;
                    ++count;
                }
            }
            if (count == 0) continue;
            small.values[static_cast<std::size_t>(r * columns + c)] =
                maximum ? largest : static_cast<float>(sum / count);
        }
    }
    return small;
}

/// The cells of a square of this size: a map of fewer queries or keys fills it all the same, in larger blocks.
std::vector<float> squared(const Tile& tile, std::int64_t size, bool per_head) {
    std::vector<float> values;
    const float whole = per_head && tile.highest > 0 ? static_cast<float>(tile.highest) : 1.0F;
    for (std::int64_t r = 0; r < size; ++r) {
        for (std::int64_t c = 0; c < size; ++c) {
            const std::int64_t y = r * tile.rows / size, x = c * tile.columns / size;
            const bool there = tile.rows > 0 && tile.columns > 0;  // a sequence without a token has no cell
            values.push_back(there ? tile.values[static_cast<std::size_t>(y * tile.columns + x)] / whole : kNone);
        }
    }
    return values;
}

Table thumbnails_table(const std::vector<Tile>& tiles, const std::string& statistic) {
    std::vector<std::int64_t> layer, head, row, column;
    std::vector<std::string> site;
    std::vector<double> value;
    for (const auto& tile : tiles) {
        for (std::int64_t i = 0; i < tile.rows * tile.columns; ++i) {
            const float v = tile.values[static_cast<std::size_t>(i)];
            if (std::isnan(v)) continue;
            layer.push_back(tile.layer);
            site.push_back(tile.site);
            head.push_back(tile.head);
            row.push_back(i / tile.columns);
            column.push_back(i % tile.columns);
            value.push_back(v);
        }
    }
    return {{{"layer", std::move(layer)},
             {"site", std::move(site)},
             {"head", std::move(head)},
             {"query_block", std::move(row)},
             {"key_block", std::move(column)},
             {statistic, std::move(value)}}};
}

/// Blocks of one site's heads, the mean over sequences. Throws Error (usage) where these differ in size.
struct Blocks {
    std::int64_t side = 0, rows = 0, columns = 0;
    std::vector<double> values;  ///< [H, side, side]; NaN: none

    double at(std::int64_t head, std::int64_t row, std::int64_t column) const {
        return values[static_cast<std::size_t>((head * side + row) * side + column)];
    }
};

Blocks read_blocks(const store::AnalysisFile& file, std::int64_t site, const FigureOptions& options) {
    const auto& about = file.header().sites[static_cast<std::size_t>(site)];
    Blocks blocks;
    std::vector<double> counts;
    for (const auto s : chosen_sequences(file, options)) {
        const auto stored = file.thumbnail(options.statistic, s, site);
        // The file's T is of its longest sequence; a shorter one fills the upper left corner, the rest is NaN.
        const auto side = stored.shape[1];
        const auto rows = std::min(side, file.header().queries(s, about));
        const auto columns = std::min(side, file.header().keys(s, about));
        if (blocks.values.empty()) {
            blocks = {side, rows, columns, std::vector<double>(stored.data.size(), 0.0)};
            counts.assign(stored.data.size(), 0.0);
        }
        if (rows != blocks.rows || columns != blocks.columns) {
            throw Error(ErrorCode::usage, "--sequence",
                        "expected a number: there is no mean of maps whose texts differ in length", "found all");
        }
        for (std::size_t i = 0; i < stored.data.size(); ++i) {
            if (!std::isfinite(stored.data[i])) continue;
            blocks.values[i] += stored.data[i];
            ++counts[i];
        }
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
        blocks.values[i] = counts[i] > 0 ? blocks.values[i] / counts[i] : std::numeric_limits<double>::quiet_NaN();
    return blocks;
}

std::vector<Tile> read_tiles(const store::AnalysisFile& file, const std::vector<std::int64_t>& sites,
                             const FigureOptions& options) {
    std::int64_t count = 0;
    for (const auto site : sites) {
        check_head(file, site, options);
        count += options.head ? 1 : file.header().sites[static_cast<std::size_t>(site)].heads;
    }
    const auto affordable =
        static_cast<std::int64_t>(std::sqrt(static_cast<double>(kMostCells / std::max<std::int64_t>(1, count))));
    std::vector<Tile> tiles;
    for (const auto site : sites) {
        const auto& about = file.header().sites[static_cast<std::size_t>(site)];
        const Blocks blocks = read_blocks(file, site, options);
        const auto sparse = heads_with_zeros(file, site, chosen_sequences(file, options));
        for (std::int64_t h = 0; h < about.heads; ++h) {
            if (options.head && *options.head != h) continue;
            Tile tile{about.layer, h, site_label(file, site), site_title(file, site), blocks.rows, blocks.columns,
                      {},          0, about.has_implicit};
            for (std::int64_t r = 0; r < blocks.rows; ++r)
                for (std::int64_t c = 0; c < blocks.columns; ++c)
                    tile.values.push_back(static_cast<float>(blocks.at(h, r, c)));
            hide_future(tile, about);
            tile.zeros = about.has_matrix && sparse[static_cast<std::size_t>(h)];
            for (const float value : tile.values)
                if (!std::isnan(value)) tile.highest = std::max(tile.highest, std::abs(static_cast<double>(value)));
            tiles.push_back(shrunk(tile, std::max<std::int64_t>(8, affordable), options.statistic == "maximum"));
        }
    }
    return tiles;
}

/// Only coefficients are drawn with their signs; beside weights their magnitudes are.
bool of_signs(const std::vector<Tile>& tiles) {
    return std::all_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.implicit; });
}

/// One for all heads; with a scale per head, of the shares of each head's highest value.
ColourScale shared_scale(const std::vector<Tile>& tiles, const std::string& statistic, bool per_head) {
    ColourScale scale;
    float most = 0;
    for (const auto& tile : tiles) {
        for (const float value : tile.values) {
            if (!std::isnan(value)) most = std::max(most, std::abs(value));
        }
    }
    if (of_signs(tiles)) {
        scale.label = statistic == "maximum" ? "coefficient of greatest magnitude" : "mean coefficient of a block";
        if (per_head) scale.label += ", as a share of the head's highest";
        scale.map = ColourMap::diverging;
        scale.scale = ScaleKind::square_root;
        scale.maximum = most > 0 && !per_head ? most : 1;
        scale.minimum = -scale.maximum;
        return scale;
    }
    scale.label = statistic == "maximum" ? "largest weight of a block" : "mean weight of a block";
    if (per_head) scale.label += ", as a share of the head's highest";
    scale.maximum = most > 0 && !per_head ? most : 1;
    scale.scale = ScaleKind::logarithmic;
    scale.minimum = scale.maximum * (statistic == "maximum" ? 1e-3 : 1e-4);
    for (const auto& tile : tiles)
        if (tile.zeros) set_zero_apart(scale, tile.values);
    return scale;
}

FigureData thumbnails(Files files, const FigureOptions& options) {
    if (options.statistic != "mean" && options.statistic != "maximum") {
        throw Error(ErrorCode::usage, "--statistic", "expected mean or maximum", "found " + escaped(options.statistic));
    }
    if (files.size() != 1) {
        throw Error(ErrorCode::usage, "figure thumbnails", "expected one analysis file",
                    "found " + std::to_string(files.size()));
    }
    const auto& file = *files.front();
    const auto sites = chosen_sites(file, options);
    auto tiles = read_tiles(file, sites, options);
    const bool some_implicit =
        std::any_of(tiles.begin(), tiles.end(), [](const Tile& tile) { return tile.implicit && tile.highest > 0; });
    const bool signs = !tiles.empty() && of_signs(tiles);
    for (Tile& tile : tiles)
        for (float& value : tile.values)
            if (tile.implicit && !signs) value = std::abs(value);
    if (signs && !some_implicit) {
        throw Error(ErrorCode::usage, "figure thumbnails of " + file_name(file),
                    "expected a file with implicit matrices: analyze with --record implicit",
                    "found recurrent layers, and none recorded");
    }
    if (tiles.empty()) {
        throw Error(ErrorCode::usage, "figure thumbnails of " + file_name(file), "expected a site with a head",
                    "found none");
    }

    Mosaic mosaic;
    mosaic.pooling = options.statistic != "maximum" ? Pooling::mean : signs ? Pooling::extreme : Pooling::maximum;
    mosaic.colours = shared_scale(tiles, options.statistic, options.scale_per_head);
    for (const auto& tile : tiles) mosaic.size = std::max({mosaic.size, tile.rows, tile.columns});
    Panel panel;
    const auto count = std::ssize(tiles);
    // One layer, or one head of all layers: no grid of its own, so the tiles are numbered and wrapped.
    const bool wrapped = sites.size() == 1 || options.head.has_value();
    if (wrapped) {
        mosaic.columns = std::min<std::int64_t>(count, count <= 4 ? count : (count <= 16 ? 4 : 8));
        mosaic.rows = (count + mosaic.columns - 1) / mosaic.columns;
    } else {
        mosaic.rows = std::ssize(sites);
        for (const auto site : sites) {
            mosaic.columns =
                std::max<std::int64_t>(mosaic.columns, file.header().sites[static_cast<std::size_t>(site)].heads);
        }
        for (std::int64_t c = 0; c < mosaic.columns; ++c)
            panel.x.ticks.push_back({static_cast<double>(c), std::to_string(c)});
        for (std::int64_t r = 0; r < mosaic.rows; ++r) {
            panel.y.ticks.push_back({static_cast<double>(r), site_label(file, sites[static_cast<std::size_t>(r)])});
        }
        panel.x.label = "head";
        panel.y.label = "layer";
    }
    const auto cells = static_cast<std::size_t>(mosaic.size * mosaic.size);
    mosaic.values.assign(static_cast<std::size_t>(mosaic.rows * mosaic.columns) * cells, kNone);
    if (wrapped) mosaic.tile_labels.assign(static_cast<std::size_t>(count), "");
    std::int64_t row = -1;
    std::string before;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto& tile = tiles[static_cast<std::size_t>(i)];
        if (i == 0 || tile.site != before) ++row;
        before = tile.site;
        const auto at = wrapped ? i : row * mosaic.columns + tile.head;
        const std::vector<float> values = squared(tile, mosaic.size, options.scale_per_head);
        std::copy(values.begin(), values.end(),
                  mosaic.values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(at) * cells));
        if (wrapped) {
            mosaic.tile_labels[static_cast<std::size_t>(i)] =
                options.head ? tile.title : "head " + std::to_string(tile.head);
        }
    }

    FigureData figure;
    figure.title = std::string("Attention of every head") + (options.head ? " " + std::to_string(*options.head) : "") +
                   (options.layer ? ", layer " + std::to_string(*options.layer) : "");
    if (options.head) {
        figure.title = "Attention of head " + std::to_string(*options.head) +
                       (options.layer ? " of layer " + std::to_string(*options.layer) : " of every layer");
    } else if (options.layer) {
        figure.title = "Attention of every head of layer " + std::to_string(*options.layer);
    }
    figure.panel_aspect = static_cast<double>(mosaic.rows) / static_cast<double>(mosaic.columns);
    // A page stays about as high as A4, labels of the tiles included, however many layers there are.
    const double highest_mm = std::max(60.0, 235.0 - (wrapped ? 3.5 * static_cast<double>(mosaic.rows) : 0.0));
    figure.widest_mm = std::min(static_cast<double>(mosaic.columns) * 60, highest_mm / figure.panel_aspect);
    panel.content = std::move(mosaic);
    figure.panels.push_back(std::move(panel));
    figure.shared_colours = true;
    figure.notes = source_notes(files, options);
    figure.notes.push_back(
        std::string("Rows are queries, columns are keys; each cell is the ") +
        (options.statistic == "maximum" ? "largest" : "mean") + " weight of a block of the text. " +
        (options.scale_per_head ? "Each head has its own logarithmic color scale, up to its largest value. "
         : signs                ? "All heads share a square-root color scale. "
                                : "All heads share a logarithmic color scale. ") +
        (signs ? ""
               : "Values below its lower end, and blocks hidden by a window or padding, have the color of that end. ") +
        "Gray: future tokens of causal layers, or no value.");
    if (std::get<Mosaic>(figure.panels.front().content).colours.zero_apart)
        figure.notes.emplace_back("Blocks whose weights are all exactly 0 have their own color.");
    if (some_implicit) {
        figure.notes.emplace_back(signs ? "Of recurrent layers: coefficients of their implicit matrices, with signs."
                                        : "Of recurrent layers: magnitudes of their implicit matrices' coefficients; "
                                          "--layer shows one with signs.");
    }
    const bool unequal = std::any_of(tiles.begin(), tiles.end(), [&](const Tile& tile) {
        return tile.rows != tiles.front().rows || tile.columns != tiles.front().columns;
    });
    if (unequal)
        figure.notes.emplace_back("All maps are drawn as squares, whatever their numbers of queries and keys.");
    figure.table = [tiles, statistic = options.statistic] { return thumbnails_table(tiles, statistic); };
    return figure;
}

}  // namespace

extern const Recipe kThumbnails{
    .name = "thumbnails",
    .description = "small attention maps of every head of every layer",
    .needs = "thumbnails",
    .of_analyses = thumbnails,
    .options = {"layer", "head", "sequence", "names", "statistic", "scale-per-head"},
};

}  // namespace headscope::figures
